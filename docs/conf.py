"""Configuration of Sphinx; `make docs` builds the pages in English and in Chinese."""

import sys
from pathlib import Path

here = Path(__file__).parent
# This tree, not an installed copy; `refresh` stands here, and the extension in `_ext`.
sys.path[:0] = [str(here.parent / "src"), str(here), str(here / "_ext")]

project = "Roundelay"
author = "the Roundelay authors"
copyright = "the Roundelay authors; Apache-2.0"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "roundelay_docs",
]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "code"

autodoc_member_order = "bysource"
autodoc_mock_imports = ["roundelay._native"]  # a source tree has no native core beside it
autodoc_typehints = "none"  # the signature would hide the text; Args say what is meant
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False  # long names of array types would hide the text

language = "en"
locale_dirs = ["locale"]
gettext_compact = False  # one catalogue a page
gettext_location = False  # catalogues change only where the text does
gettext_uuid = False
gettext_additional_targets = []

html_theme = "furo"
html_title = "Roundelay"
html_static_path = ["_static"]
html_css_files = ["roundelay.css"]
html_copy_source = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
