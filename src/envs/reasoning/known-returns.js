/** Mean scores of random text by task. */
export const KNOWN_RETURNS = {
    chain_sum: 0.00034,
    gcd: 0.0026,
    spell_backward: 0.021,
    letter_counting: 0.0028,
    number_sorting: 0,
    base_conversion: 0.000037,
    countdown: 0.01,
    leg_counting: 0.000016,
    simple_equations: 0.00042,
    knights_knaves: 0,
    lcm: 0.000017,
    count_bits: 0.00022,
    caesar_cipher: 0,
    word_sorting: 0,
    mini_sudoku: 0.0011,
};
