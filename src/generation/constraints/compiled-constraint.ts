/** The position in a constrained completion while its tokens are sampled. */
export interface ConstraintCursor {
  /**
   * Tokens that may come next, in ascending order; empty after a complete or an invalid completion.
   */
  readonly allowedTokens: Int32Array;
  /** Whether the tokens so far form a complete completion that nothing may follow. */
  readonly isComplete: boolean;
  advance(token: number): void;
}

/** A restriction on the tokens of a completion. */
export interface TokenConstraint {
  /** Returns a cursor before the first token. */
  cursor(): ConstraintCursor;
}

/** A constraint on a completion's text, compiled to tokens. */
export interface CompiledConstraint extends TokenConstraint {
  /** Maximum number of tokens of a completion. */
  readonly maxLength: number;
  /**
   * Tokenizes a text, with the end token where it needs one; `undefined` if the text violates the
   * constraint. The result may exceed `maxLength`.
   */
  encode(text: string): readonly number[] | undefined;
  /**
   * Returns the index of the choice with these tokens, for a constraint that is a list of choices.
   */
  findChoice?(tokens: readonly number[]): number | undefined;
}
