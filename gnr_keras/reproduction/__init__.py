"""Every table and figure of the paper, from the cells that they share."""
