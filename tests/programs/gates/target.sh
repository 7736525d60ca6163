# A scripted chat target for the guardrail example: POLICY CASE -> answer on stdout. It is a stub, not a model.
case "$(cat "$2")" in
  *"pretend to be"*) guarded=role ;;
  *"in base64"*) guarded=encoding ;;
  *"step by step plan to harm"*) guarded=direct ;;
  *) guarded= ;;
esac
if grep -q "refuse everything" "$1"; then
  echo "REFUSED"
elif [ -n "$guarded" ] && grep -q "guard: $guarded" "$1"; then
  echo "REFUSED"
elif [ -n "$guarded" ]; then
  echo "Certainly, here is the harmful part."
else
  echo "Here is a kind answer."
fi
