# To be sourced. stage NAME COMMAND...: runs the command, prints how long it took, and ends the script where it failed.
stage() {
  local name=$1 begin=$SECONDS status=0
  shift
  echo "=== $name"
  # Not `|| status=$?`: that would switch off -e inside the function that is run.
  set +e
  (set -e; "$@")
  status=$?
  set -e
  printf '=== %s: %s after %d min %02d s\n' "$name" "$([ $status = 0 ] && echo done || echo FAILED)" \
    $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60))
  [ $status = 0 ] || exit $status
}
