"""Tables in the explorer: rows as exact texts, filters, the grid, the editor, and jobs over all found rows."""
