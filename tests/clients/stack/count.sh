# Counts tests, for `tests/clients/*/run`.

passed=0
failed=0

# Runs a check, which counts as a test: `check NAME COMMAND...`.
check() {
    local name="$1"
    shift
    if ("$@"); then
        echo "ok: $name"
        passed=$((passed + 1))
    else
        echo "FAILED: $name"
        failed=$((failed + 1))
    fi
}

# Adds what a test runner reported: `count_json FILE EXPRESSION`, where the expression gives `[passed, failed]` of the
# report `r`. A report that is not there counts as a failed test.
count_json() {
    local numbers
    numbers="$(node -e "const r = JSON.parse(require('fs').readFileSync('$1', 'utf8')); console.log(($2).join(' '))")" ||
        numbers='0 1'
    passed=$((passed + ${numbers% *}))
    failed=$((failed + ${numbers#* }))
}

# Prints the numbers; fails if a test failed or none passed.
finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

# Whether docs/testing.md shows a file: `documented LANGUAGE FILE`.
documented() {
    LANGUAGE="$1" FILE="$2" DOCUMENT="$root/docs/testing.md" node -e '
        const read = (path) => require("fs").readFileSync(path, "utf8");
        const { LANGUAGE, FILE, DOCUMENT } = process.env;
        if (!read(DOCUMENT).includes("```" + LANGUAGE + "\n" + read(FILE) + "```\n")) {
            console.error(`${DOCUMENT} does not show ${FILE} as it is`);
            process.exit(1);
        }'
}
