"""The documentation site: the pages of this repository, and a reference of every public name.

    python -m tools.site [FOLDER]    # FOLDER: build/docs; the site is in FOLDER/site

    pages            the repository's pages, with links that hold on the site; the navigation
    reference        a page for each subject, for mkdocstrings
    llms             llms.txt and the pages as Markdown, for language models
    links            every link and anchor of the built site
    zensical.toml, assets/    its settings

README.md and docs/ are the source; nothing on the site is written twice. `nox -s docs` builds it.
"""
