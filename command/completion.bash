# SPDX-License-Identifier: MIT
# Completion of `tickwheel` in bash. It reads the commands, the options and the values of an option from the help
# texts (`tickwheel --help`, `tickwheel COMMAND --help`), so it always agrees with the program. It needs only bash 4
# and sort.

# Prints the words of a help text that begin a line of a list: commands in `tickwheel --help`, options elsewhere,
# and both in `tickwheel tasks --help`.
_tickwheel_listed() {
    local line
    while IFS= read -r line; do
        [[ $line =~ ^'  '([a-z]+|--[a-z-]+)(' '|$) ]] && echo "${BASH_REMATCH[1]}"
    done
}

# Prints the options of a help text: the options in the usage lines, which end with an empty line, and the options
# that begin a line.
_tickwheel_options() {
    local line word usage=yes
    while IFS= read -r line; do
        [[ $line ]] || usage=
        [[ $usage || $line =~ ^' '+-[-a-z] ]] || continue
        [[ $usage ]] || line=${line%%  [a-z]*} # cut off the description
        for word in ${line//[\[\]|,=]/ }; do
            [[ $word =~ ^--[a-z][a-z-]*$ ]] && echo "$word"
        done
    done
}

# Prints the name of an option's value: the word in capitals behind the option, such as FILE. Prints nothing if the
# option takes no value. The help text is on standard input.
_tickwheel_argument() {
    local line
    while IFS= read -r line; do
        if [[ $line =~ (^|[ \[,])"$1"[=\ ]([A-Z][A-Z:]*) ]]; then
            echo "${BASH_REMATCH[2]}"
            return
        fi
    done
}

# Prints the possible values of an option, if its line in the help text ends with them. Example: the line
# "--overflow HOW  ...: reject, rounds or grow" gives reject, rounds and grow.
_tickwheel_choices() {
    local line words
    while IFS= read -r line; do
        [[ $line =~ ^' '+"$1"' '.*': '(([a-z]+(':'N)?(', '|' or '|$))+)$ ]] || continue
        words=${BASH_REMATCH[1]//, / }
        words=${words// or / }
        printf '%s\n' ${words//:N/:}
        return
    done
}

# True if a command takes files: FILE or TRACE stands in its usage and is not the value of an option.
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

# Offers names of files and folders. The names may contain any characters.
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
    if [[ ${help%%$'\n'*} == *" ${COMP_WORDS[1]} COMMAND [ARGUMENTS]" ]]; then # its commands have help texts of their own
        if ((COMP_CWORD == 2)); then
            _tickwheel_reply -W "$(_tickwheel_listed <<<"$help") --help" -- "$current"
            return
        fi
        help=$("$program" "${COMP_WORDS[1]}" "${COMP_WORDS[2]}" --help 2>/dev/null </dev/null)
    fi
    argument=
    [[ $before != -* ]] || argument=$(_tickwheel_argument "$before" <<<"$help")
    if [[ $argument ]]; then
        _tickwheel_value "$argument" "$before" "$current" "$help"
    elif [[ $current == -* ]]; then
        _tickwheel_reply -W "$({ _tickwheel_options <<<"$help"; echo --help; } | sort -u)" -- "$current"
    elif [[ ${help%%$'\n'*} == *' [COMMAND]' ]]; then
        _tickwheel_reply -W "$(_tickwheel_listed <<<"$help")" -X '--*' -- "$current"
    elif _tickwheel_takes_files <<<"$help"; then
        _tickwheel_files "$current"
    fi
}

complete -F _tickwheel tickwheel
