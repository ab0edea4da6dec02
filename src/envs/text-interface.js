/** Returns the possible completions in a state; undefined when they are not listed. */
export function getChoices(text, observation, info) {
    return typeof text.choices === "function" ? text.choices(observation, info) : text.choices;
}
