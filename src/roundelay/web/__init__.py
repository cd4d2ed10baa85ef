"""The page: schedules, clusters and runs to look at, served here or put into one file.

`server` serves it, `page` writes it into a file, `data` works out what the views draw, and
`static` holds the views: plain ES modules, which no build step touches.
"""
