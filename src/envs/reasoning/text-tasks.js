import { verifyContained, verifyLetters, verifySortedNumbers, verifySortedWords } from "./verifiers.js";
import { ANIMALS, WORDS } from "./words.js";
/** A word from its last letter to its first. */
export const spellBackward = {
    name: "spell_backward",
    summary: "spell a word backward",
    levels: [{ length: [3, 4] }, { length: [3, 6] }, { length: [3, 10] }],
    defaultLevel: 2,
    verify: verifyLetters,
    createItem(draw) {
        // The larger of two draws: longer words are more frequent, as in a dictionary.
        const drawn = Math.max(draw.setting("length"), draw.setting("length"));
        const word = draw.pick(WORDS.filter(({ length }) => length === drawn));
        const answer = Array.from(word).reverse().join("");
        return { question: `Spell this word backward: ${word}`, answer, metadata: { word, word_len: word.length } };
    },
};
/** How often a letter is in a row of words. */
export const letterCounting = {
    name: "letter_counting",
    summary: "count a letter",
    levels: [{ words: [1, 2] }, { words: [3, 6] }, { words: [5, 15] }, { words: [15, 30] }],
    defaultLevel: 2,
    verify: verifyContained,
    createItem(draw) {
        const words = draw.list(draw.setting("words"), () => draw.pick(WORDS));
        const text = words.join(" ");
        const letter = draw.pick([...new Set(text.replaceAll(" ", ""))]);
        return {
            question: `How many times is the letter ${letter} in: ${text}`,
            answer: String(text.split(letter).length - 1),
            metadata: { span_length: words.length, target_letter: letter },
        };
    },
};
/** Numbers in ascending or descending order. */
export const numberSorting = {
    name: "number_sorting",
    summary: "sort numbers",
    levels: [
        { numbers: [3, 3], decimals: [0, 0], value: [0, 20] },
        { numbers: [3, 5], decimals: [0, 1], value: [-50, 50] },
        { numbers: [3, 10], decimals: [0, 2], value: [-100, 100] },
        { numbers: [10, 20], decimals: [0, 4], value: [-1000, 1000] },
    ],
    defaultLevel: 2,
    verify: verifySortedNumbers,
    createItem(draw) {
        const [low, high] = draw.range("value");
        const numbers = draw.list(draw.setting("numbers"), () => {
            const decimals = draw.setting("decimals");
            return (draw.int(low * 10 ** decimals, high * 10 ** decimals) / 10 ** decimals).toFixed(Math.max(1, decimals));
        });
        const direction = draw.pick(["ascending", "descending"]);
        const sign = direction === "ascending" ? 1 : -1;
        const sorted = numbers.toSorted((a, b) => sign * (Number(a) - Number(b)));
        return {
            question: `Sort in ${direction} order: ${numbers.join(", ")}. Answer with a list such as ['1.0', '2.5'].`,
            answer: `[${sorted.map((number) => `'${number}'`).join(", ")}]`,
            metadata: { original_numbers: numbers, direction, sorted_numbers: sorted, numbers: numbers.length },
        };
    },
};
/** Words in ascending or descending order. */
export const wordSorting = {
    name: "word_sorting",
    summary: "sort words",
    levels: [{ words: [2, 3] }, { words: [3, 5] }, { words: [3, 10] }, { words: [10, 20] }],
    defaultLevel: 2,
    verify: verifySortedWords,
    createItem(draw) {
        const words = draw.subset(WORDS, draw.setting("words"));
        const direction = draw.pick(["ascending", "descending"]);
        const sorted = words.toSorted();
        if (direction === "descending")
            sorted.reverse();
        return {
            question: `Sort in ${direction} alphabetical order: ${words.join(", ")}. Answer with commas in between.`,
            answer: sorted.join(", "),
            metadata: { original_words: words, sorted_words: sorted, direction, num_words: words.length },
        };
    },
};
/** The legs of several animals. */
export const legCounting = {
    name: "leg_counting",
    summary: "count legs",
    levels: [
        { animals: [1, 2], instances: [1, 3] },
        { animals: [2, 4], instances: [1, 8] },
        { animals: [3, 10], instances: [1, 15] },
        { animals: [8, 20], instances: [1, 40] },
    ],
    defaultLevel: 2,
    verify: verifyContained,
    createItem(draw) {
        const animals = draw.subset(ANIMALS, draw.setting("animals"));
        const herds = animals.map(([name, legs]) => ({ name, legs, count: draw.setting("instances") }));
        const total = herds.reduce((sum, { legs, count }) => sum + legs * count, 0);
        return {
            question: `How many legs have, in all: ${herds.map(({ name, count }) => `${count} ${name}`).join(", ")}?`,
            answer: String(total),
            metadata: { num_animals: herds.length, total_legs: total },
        };
    },
};
const SHORT_WORDS = WORDS.filter(({ length }) => length <= 5);
/** A text whose letters were moved along the alphabet. */
export const caesarCipher = {
    name: "caesar_cipher",
    summary: "decrypt a cipher",
    levels: [
        { words: [1, 2], rotation: [1, 3] },
        { words: [2, 6], rotation: [1, 25] },
        { words: [3, 20], rotation: [1, 25] },
    ],
    defaultLevel: 2,
    verify: verifyContained,
    createItem(draw) {
        const clear = draw.list(draw.setting("words"), () => draw.pick(SHORT_WORDS).toUpperCase()).join(" ");
        const rotation = draw.setting("rotation");
        const cipher = clear.replace(/[A-Z]/g, (letter) => String.fromCharCode(65 + ((letter.charCodeAt(0) - 65 + rotation) % 26)));
        return {
            question: `Decrypt this Caesar cipher: ${cipher}`,
            answer: clear,
            metadata: { rotation, cipher_text: cipher, clear_text: clear },
        };
    },
};
