// Jupyter Book 2 loads this file before it does anything else, because myst.yml names it as a
// plugin. Without it, Jupyter Book 2 builds nothing here and reports success.
console.error(`
This book needs Jupyter Book 1: its live widgets and its formulas are made by a Sphinx extension,
and Jupyter Book 2 does not load those. To build the book, type

  make site

or, in an environment of your own, with Node 18 or later on the PATH:

  pip install -c requirements.txt "jupyter-book<2" sphinxcontrib-katex
  npm ci --prefix site
  jupyter-book build .
`);
process.exit(1);
