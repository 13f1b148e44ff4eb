#!/bin/sh
# Install this bundle: a virtual environment with the wheels that travel in it, and a service of systemd. No network.
set -eu
umask 022

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/lib/install/names.sh"

usage() {
  cat <<TEXT
usage: install.sh [--user] [--prefix DIR] [--no-service] [--no-start] [--any-system]

  --user        install for this user alone, below ~/.local/share, with a service of the user's; needs no root
  --prefix DIR  install into DIR instead of /opt/edgekit/$NAME
  --no-service  do not install the systemd service
  --no-start    install the service, and do not start it
  --any-system  go on with a system that this bundle was not made for
TEXT
}

say() { printf '%s\n' "$*" >&2; }
fail() { code=$1; shift; say "${EDGEKIT_CALLER:-install.sh}: $*"; exit "$code"; }

user=no prefix='' service=yes start=yes any=no
while [ $# -gt 0 ]; do
  case $1 in
    --user) user=yes ;;
    --prefix)
      case ${2:--} in -*) fail 2 "--prefix needs a folder." ;; esac
      prefix=$2
      shift
      ;;
    --no-service) service=no ;;
    --no-start) start=no ;;
    --any-system) any=yes ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; fail 2 "there is no option '$1'." ;;
  esac
  shift
done

# --- is this the device that the bundle was made for? ---------------------------------------------------------------

[ "$(uname -s)" = Linux ] || fail 4 "this bundle is for Linux, and this is $(uname -s)."
machine=$(uname -m)
if [ "$machine" != "$MACHINE" ]; then
  case $machine in
    arm*) fail 4 "this bundle is for $MACHINE, and this system is 32-bit ($machine). A 64-bit system is needed." ;;
    *) fail 4 "this bundle is for $MACHINE, and this machine is $machine." ;;
  esac
fi
command -v python3 >/dev/null || fail 4 "there is no python3. Install it: sudo apt-get install python3"
bits=$(python3 -c 'import struct; print(8 * struct.calcsize("P"))')
[ "$bits" = 64 ] || fail 4 "the kernel is 64-bit, but this system's programs are ${bits}-bit. A 64-bit system is needed."
python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case " $PYTHONS " in
  *" $python "*) ;;
  *) fail 4 "this bundle has wheels for Python $PYTHONS, and this system has Python $python." ;;
esac
system=unknown
if [ -r /etc/os-release ]; then
  # In a shell of its own: the file sets many names.
  system=$(. /etc/os-release; printf '%s:%s' "${ID:-unknown}" "${VERSION_CODENAME:-}")
fi
if [ -n "$SYSTEMS" ] && [ "$any" = no ]; then
  known=no
  for one in $SYSTEMS; do
    case $system in "$one" | "$one":*) known=yes ;; esac
  done
  [ "$known" = yes ] || fail 4 "this bundle was made for $SYSTEMS, and this is $system. To go on: --any-system"
fi

# --- where to ---------------------------------------------------------------------------------------------------------

if [ "$user" = yes ]; then
  : "${prefix:=${XDG_DATA_HOME:-$HOME/.local/share}/edgekit/$NAME}"
  units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
  control="systemctl --user"
else
  : "${prefix:=/opt/edgekit/$NAME}"
  units=/etc/systemd/system
  control=systemctl
fi
case $prefix in /*) ;; *) prefix=$(pwd)/$prefix ;; esac
case $prefix in
  *[!A-Za-z0-9/._+~@:-]* | / | */)
    [ -z "${EDGEKIT_CALLER:-}" ] || fail 2 "'$here' cannot be run from: move this folder to a path of letters, digits and . _ + ~ @ : - (without spaces), or run install.sh --user"
    fail 2 "'$prefix' cannot be installed into: take a path of letters, digits and . _ + ~ @ : -" ;;
esac
parent=$(dirname -- "$prefix")
# Tried, and not only asked: not every system answers what it would allow.
if ! mkdir -p "$parent/.edgekit-$$" 2>/dev/null || ! rmdir "$parent/.edgekit-$$"; then
  fail 2 "$parent cannot be written. Run it with sudo, or with --user, or give another --prefix."
fi
if [ -e "$prefix" ] && [ -n "$(ls -A "$prefix" 2>/dev/null)" ] && [ ! -f "$prefix/bundle/manifest.json" ]; then
  fail 2 "$prefix holds something else. Give another --prefix."
fi

# --- install: whole or not at all -------------------------------------------------------------------------------------

# An installation that stopped between its two last steps left the one before it aside.
if [ ! -e "$prefix" ] && [ -f "$prefix.old/bundle/manifest.json" ]; then
  mv "$prefix.old" "$prefix"
fi

sum() { sha256sum "$1" | cut -d' ' -f1; }
wanted=$(sum "$here/manifest.json")
stamp="$wanted python$python"
if [ "$(cat "$prefix/.installed" 2>/dev/null || true)" = "$stamp" ]; then
  say "$prefix is up to date."
else
  work=$prefix.new
  rm -rf "$work"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT TERM
  mkdir -p "$work/bundle" "$work/bin"
  for part in manifest.json config.toml LICENSE.txt model cases lib examples; do
    [ ! -e "$here/$part" ] || cp -R "$here/$part" "$work/bundle/"
  done
  python3 -m venv --without-pip "$work/venv" || fail 4 "python3 cannot make a virtual environment: sudo apt-get install python3-venv"
  python3 "$here/lib/edgekit/device/unpack.py" "$here" "$work/venv/lib/python$python/site-packages"
  # Some wheels crash on some processors: better now than when it serves. It also leaves the compiled modules behind.
  code=0
  "$work/venv/bin/python3" -c 'import onnxruntime' || code=$?
  [ "$code" = 0 ] || fail 4 "onnxruntime does not start on this device (exit code $code; 132 is an illegal instruction)."
  # Where the environment lies is written nowhere in it but here, and the whole of it moves at once below.
  sed "s|@PREFIX@|$prefix|g" "$here/lib/install/edgekit-run.in" >"$work/bin/edgekit-run"
  sed "s|@PREFIX@|$prefix|g; s|@UNITS@|$units|g; s|@CONTROL@|$control|g" "$here/lib/install/uninstall.sh.in" >"$work/uninstall.sh"
  chmod 755 "$work/bin/edgekit-run" "$work/uninstall.sh"
  # A configuration that was changed stays; what this bundle would have set lies in bundle/config.toml.
  if [ -f "$prefix/config.toml" ] && ! cmp -s "$prefix/config.toml" "$prefix/bundle/config.toml"; then
    cp -p "$prefix/config.toml" "$work/"
  else
    cp "$here/config.toml" "$work/"
  fi
  printf '%s' "$stamp" >"$work/.installed"
  trap '' INT TERM
  if [ -e "$prefix" ]; then
    rm -rf "$prefix.old"
    mv "$prefix" "$prefix.old"
  fi
  mv "$work" "$prefix"
  rm -rf "$prefix.old"
  trap - EXIT INT TERM
  say "Installed in $prefix."
fi

# --- the service --------------------------------------------------------------------------------------------------------

if [ "$service" = yes ]; then
  if ! command -v systemctl >/dev/null; then
    say "There is no systemd here, so no service was installed. Start it by hand: $prefix/bin/edgekit-run serve"
    exit 0
  fi
  mkdir -p "$units"
  template=$here/lib/install/service.in
  [ "$user" = no ] || template=$here/lib/install/user-service.in
  sed "s|@PREFIX@|$prefix|g" "$template" >"$units/edgekit-$NAME.service"
  if ! $control daemon-reload 2>/dev/null; then
    say "systemd does not answer here, so the service was written and not started. Start it by hand: $prefix/bin/edgekit-run serve"
    exit 0
  fi
  if [ "$start" = yes ]; then
    $control enable edgekit-"$NAME".service
    $control restart edgekit-"$NAME".service
    log=journalctl
    [ "$user" = no ] || log="journalctl --user"
    say "The service edgekit-$NAME runs. Its log: $log -u edgekit-$NAME"
  fi
fi
[ -n "${EDGEKIT_CALLER:-}" ] || say "Try it: $prefix/bin/edgekit-run bench"
