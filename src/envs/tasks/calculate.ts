/** Result of a calculation, or the reason of its failure. */
export type CalculationResult = { readonly value: number } | { readonly problem: string };

const MAX_DEPTH = 50;

/** Evaluates numbers, + - * / and parentheses, without executing code. */
export function calculate(expression: string): CalculationResult {
  const tokens = expression.match(/\d+(?:\.\d+)?|[-+*/()]|\S/g) ?? [];
  try {
    const parser = new ExpressionParser(tokens);
    const value = parser.parseSum(0);
    parser.expectEnd();
    return Number.isFinite(value) ? { value } : { problem: "That divides by zero." };
  } catch (error) {
    if (error instanceof ArithmeticError) return { problem: error.message };
    throw error;
  }
}

class ArithmeticError extends Error {}

class ExpressionParser {
  private position = 0;

  constructor(private readonly tokens: readonly string[]) {}

  parseSum(depth: number): number {
    let value = this.parseProduct(depth);
    for (let sign = this.accept("+", "-"); sign !== undefined; sign = this.accept("+", "-")) {
      const term = this.parseProduct(depth);
      value = sign === "+" ? value + term : value - term;
    }
    return value;
  }

  expectEnd(): void {
    const token = this.tokens[this.position];
    if (token !== undefined) throw new ArithmeticError(`"${token}" is not understood there.`);
  }

  private parseProduct(depth: number): number {
    let value = this.factor(depth);
    for (let sign = this.accept("*", "/"); sign !== undefined; sign = this.accept("*", "/")) {
      const factor = this.factor(depth);
      value = sign === "*" ? value * factor : value / factor;
    }
    return value;
  }

  private factor(depth: number): number {
    if (depth > MAX_DEPTH) throw new ArithmeticError("There are too many parentheses.");
    if (this.accept("-") !== undefined) return -this.factor(depth + 1);
    if (this.accept("(") !== undefined) {
      const value = this.parseSum(depth + 1);
      if (this.accept(")") === undefined) throw new ArithmeticError("A parenthesis is not closed.");
      return value;
    }
    const token = this.tokens[this.position];
    if (token === undefined) throw new ArithmeticError("Something is missing at the end.");
    if (!/^\d/.test(token)) throw new ArithmeticError(`"${token}" is not understood there.`);
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
