import { type Pattern, compilePattern, patternKey } from "./pattern.js";
import { PatternConstraint, type PatternConstraintOptions } from "./pattern-constraint.js";
import { TokenAutomaton } from "./token-automaton.js";
import type { Vocabulary } from "./vocabulary.js";

/** Patterns that are kept compiled. */
const MOST_KEPT = 16;

/** Makes constraints for a model's vocabulary; what a pattern compiles to is kept for the next reply. */
export class PatternCompiler {
  private readonly compiled = new Map<string, TokenAutomaton>();

  constructor(private readonly vocabulary: Vocabulary) {}

  /** Throws INVALID_ARGUMENT for a pattern that is not supported or cannot be met within the options. */
  constraint(pattern: Pattern, options: PatternConstraintOptions): PatternConstraint {
    return new PatternConstraint(this.automaton(pattern), options);
  }

  private automaton(pattern: Pattern): TokenAutomaton {
    const key = patternKey(pattern);
    const automaton = this.compiled.get(key) ?? new TokenAutomaton(compilePattern(pattern), this.vocabulary);
    this.compiled.delete(key);
    this.compiled.set(key, automaton);
    for (const oldest of this.compiled.keys()) if (this.compiled.size > MOST_KEPT) this.compiled.delete(oldest);
    return automaton;
  }
}
