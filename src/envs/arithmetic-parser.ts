/** What is wrong with an expression, as a sentence. */
export class ExpressionError extends Error {}

const MAX_DEPTH = 50;
const PYTHON_NUMBER = /^(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?$/;

/**
 * Evaluates arithmetic without executing code: numbers, + - * / and parentheses; with `isPython`
 * also ** and +x.
 */
export class ArithmeticParser {
  private position = 0;
  private readonly tokens: readonly string[];

  private constructor(
    expression: string,
    private readonly isPython: boolean,
  ) {
    const pattern = isPython
      ? /(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|\*\*|[-+*/()]|\S/g
      : /\d+(?:\.\d+)?|[-+*/()]|\S/g;
    this.tokens = expression.match(pattern) ?? [];
  }

  /**
   * Returns the value of an expression, which may be infinite or NaN. `isPython` reads numbers as
   * Python does: `74.` and `1e3`, no leading zeros. @throws ExpressionError
   */
  static evaluate(expression: string, { isPython = false } = {}): number {
    const parser = new ArithmeticParser(expression, isPython);
    const value = parser.parseSum(0);
    const token = parser.tokens[parser.position];
    if (token !== undefined) throw new ExpressionError(`"${token}" is not understood there.`);
    return value;
  }

  private parseSum(depth: number): number {
    let value = this.parseProduct(depth);
    for (let sign = this.accept("+", "-"); sign !== undefined; sign = this.accept("+", "-")) {
      const term = this.parseProduct(depth);
      value = sign === "+" ? value + term : value - term;
    }
    return value;
  }

  private parseProduct(depth: number): number {
    let value = this.parseFactor(depth);
    for (let sign = this.accept("*", "/"); sign !== undefined; sign = this.accept("*", "/")) {
      const factor = this.parseFactor(depth);
      value = sign === "*" ? value * factor : value / factor;
    }
    return value;
  }

  private parseFactor(depth: number): number {
    if (depth > MAX_DEPTH) throw new ExpressionError("There are too many parentheses.");
    if (this.accept("-") !== undefined) return -this.parseFactor(depth + 1);
    if (this.isPython && this.accept("+") !== undefined) return this.parseFactor(depth + 1);
    const value = this.parseAtom(depth);
    return this.accept("**") === undefined ? value : value ** this.parseFactor(depth + 1);
  }

  private parseAtom(depth: number): number {
    if (this.accept("(") !== undefined) {
      const value = this.parseSum(depth + 1);
      if (this.accept(")") === undefined) throw new ExpressionError("A parenthesis is not closed.");
      return value;
    }
    const token = this.tokens[this.position];
    if (token === undefined) throw new ExpressionError("Something is missing at the end.");
    if (!(this.isPython ? PYTHON_NUMBER.test(token) && !/^0+[1-9]\d*$/.test(token) : /^\d/.test(token)))
      throw new ExpressionError(`"${token}" is not understood there.`);
    this.position++;
    return Number(token);
  }

  private accept(...operators: readonly string[]): string | undefined {
    const token = this.tokens[this.position];
    if (token === undefined || !operators.includes(token)) return undefined;
    this.position++;
    return token;
  }
}
