# SPDX-License-Identifier: MIT
# Completion of `tickwheel` in bash. It knows no command and no option by itself: these, and the words that an option
# chooses from, are read from `tickwheel --help` and `tickwheel COMMAND --help`, so it cannot fall behind them. It needs
# nothing but bash 4 and sort.

# The words of a help text that begin a line of its list: commands at the top, options elsewhere. Prose is left out.
_tickwheel_listed() {
    local line
    while IFS= read -r line; do
        [[ $line =~ ^'  '([a-z]+|--[a-z-]+)(' '|$) ]] && echo "${BASH_REMATCH[1]}"
    done
}

# The options of a help text: those of the usage lines, which end with an empty line, and those that begin a line.
_tickwheel_options() {
    local line word usage=yes
    while IFS= read -r line; do
        [[ $line ]] || usage=
        [[ $usage || $line =~ ^' '+-[-a-z] ]] || continue
        [[ $usage ]] || line=${line%%  [a-z]*} # what stands left of the description
        for word in ${line//[\[\]|,=]/ }; do
            [[ $word =~ ^-(-[a-z][a-z-]*|[a-z])$ ]] && echo "$word"
        done
    done
}

# What an option takes: the word in capitals behind it, or nothing. Help text on standard input.
_tickwheel_argument() {
    local line
    while IFS= read -r line; do
        if [[ $line =~ (^|[ \[,])"$1"[=\ ]([A-Z][A-Z:]*) ]]; then
            echo "${BASH_REMATCH[2]}"
            return
        fi
    done
}

# The words that an option chooses from, when its line ends with them: "...: reject, rounds or grow".
_tickwheel_choices() {
    local line words
    while IFS= read -r line; do
        [[ $line =~ ^' '+(-[a-z], )?"$1"' '.*': '(([a-z]+(':'N)?(', '|' or '|$))+)$ ]] || continue
        words=${BASH_REMATCH[2]//, / }
        words=${words// or / }
        printf '%s\n' ${words//:N/:}
        return
    done
}

# True when a command takes files: FILE or TRACE stands in its usage, and does not belong to an option.
_tickwheel_takes_files() {
    local line
    while IFS= read -r line && [[ $line ]]; do
        while [[ $line =~ -[a-z-]+[=\ ][A-Z][A-Z:]* ]]; do line=${line/"${BASH_REMATCH[0]}"/}; done
        [[ $line =~ (FILE|TRACE) ]] && return 0
    done
    return 1
}

_tickwheel_reply() {
    mapfile -t COMPREPLY < <(compgen "$@")
}

# Names of files, with those of folders, whatever characters are in them.
_tickwheel_files() {
    compopt -o filenames 2>/dev/null
    _tickwheel_reply -f -- "$1"
}

_tickwheel_value() {
    local choices
    case $1 in
    FILE | PATH | TRACE | F) _tickwheel_files "$3" ;;
    CMD) _tickwheel_reply -c -- "$3" ;;
    *)
        choices=$(_tickwheel_choices "$2" <<<"$4")
        _tickwheel_reply -W "$choices" -- "$3"
        [[ ${COMPREPLY[0]} != *: ]] || compopt -o nospace 2>/dev/null
        ;;
    esac
}

_tickwheel() {
    local IFS=$' \t\n' program=${COMP_WORDS[0]/#\~/$HOME} current=${COMP_WORDS[COMP_CWORD]} before help argument
    COMPREPLY=()
    before=${COMP_WORDS[COMP_CWORD - 1]}
    if [[ $current == "=" ]]; then
        current= # --option=
    elif [[ $before == "=" ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD == 1)); then
        help=$("$program" --help 2>/dev/null </dev/null)
        _tickwheel_reply -W "$(_tickwheel_listed <<<"$help") --help" -- "$current"
        return
    fi
    help=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null </dev/null)
    argument=
    [[ $before != -* ]] || argument=$(_tickwheel_argument "$before" <<<"$help")
    if [[ $argument ]]; then
        _tickwheel_value "$argument" "$before" "$current" "$help"
    elif [[ $current == -* ]]; then
        _tickwheel_reply -W "$({ _tickwheel_options <<<"$help"; echo --help; } | sort -u)" -- "$current"
    elif _tickwheel_takes_files <<<"$help"; then
        _tickwheel_files "$current"
    fi
}

complete -F _tickwheel tickwheel
