"""One module a back end, each with one ``Backend`` subclass; the modules are found by listing this folder."""
