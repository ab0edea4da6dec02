import { LlamaGymError } from "../../core/errors.js";
import type { Tokenizer } from "../../models/text/index.js";
import type { TokenConstraint } from "../sampling/sample-request.js";

interface TrieNode {
  readonly children: Map<number, TrieNode>;
  /** The number of the choice that is complete here. */
  choice: number | undefined;
  /** Token ids of the children, in ascending order. */
  allowedTokens: Int32Array;
}

/**
 * Holds a reply to a list of choices, each a list of tokens: a trie says which tokens lead to one. A choice ends where nothing
 * may follow; one that others begin with ends with the end token. Among the allowed tokens the model's own probabilities
 * decide, so a choice's probability is the product, over its tokens, of p(token) / sum of p over the tokens allowed there.
 */
export class ChoiceConstraint implements TokenConstraint {
  /** The tokens of each choice, with the end token where it is needed. */
  readonly sequences: readonly (readonly number[])[];
  private readonly root = createNode();

  /**
   * `names` are the choices' texts, for messages. Throws INVALID_ARGUMENT for an empty list, an empty choice, two choices with
   * equal tokens, and choices that need an end token where none is known.
   */
  constructor(
    choices: readonly (readonly number[])[],
    endToken: number | undefined,
    names: readonly string[] = choices.map((tokens) => tokens.join(" ")),
  ) {
    if (choices.length === 0) throw invalid("The list of choices is empty; give at least one.");
    const name = (index: number) => JSON.stringify(names[index]);
    choices.forEach((tokens, index) => {
      if (tokens.length === 0) throw invalid(`The choice ${name(index)} has no tokens.`);
      const other = this.insert(tokens, index);
      if (other !== undefined)
        throw invalid(`The choices ${name(other)} and ${name(index)} are the same tokens; leave one out.`);
    });
    this.sequences = choices.map((tokens, index) => {
      const node = this.findNode(tokens)!;
      if (node.children.size === 0) return tokens;
      if (endToken === undefined) {
        throw invalid(`The choice ${name(index)} begins another, and this model has no end token to tell them apart.`);
      }
      const withEndToken = [...tokens, endToken];
      const other = this.findNode(withEndToken)?.choice;
      if (other !== undefined)
        throw invalid(`The choice ${name(other)} is ${name(index)} with an end token; leave one out.`);
      return withEndToken;
    });
    this.sequences.forEach((tokens, index) => {
      if (tokens.length === choices[index].length) return;
      this.findNode(choices[index])!.choice = undefined;
      this.insert(tokens, index);
    });
    sortAllowedTokens(this.root);
  }

  /**
   * Choices as a tokenizer writes them behind other tokens, the last of which is `previousToken`.
   * Throws INVALID_ARGUMENT as the constructor does.
   */
  static fromTexts(
    tokenizer: Tokenizer,
    choices: readonly string[],
    { previousToken, endToken }: { previousToken: number | undefined; endToken: number | undefined },
  ): ChoiceConstraint {
    const tokens = choices.map((choice) => tokenizer.encodeContinuation(choice, previousToken));
    return new ChoiceConstraint(tokens, endToken, choices);
  }

  /** Tokens of the longest choice. */
  get maxLength(): number {
    return Math.max(...this.sequences.map(({ length }) => length));
  }

  allowedTokens(tokens: readonly number[]): Int32Array {
    return this.findNode(tokens)?.allowedTokens ?? new Int32Array(0);
  }

  /** The number of the choice that these tokens are, undefined while they are none. */
  findChoice(tokens: readonly number[]): number | undefined {
    return this.findNode(tokens)?.choice;
  }

  /**
   * The logarithm of each choice's probability under the constraint, from the model's log-probabilities of the tokens of
   * `sequences`.
   */
  logProbs(tokenLogProbs: readonly (readonly number[])[], temperature = 1): number[] {
    const edges = new Map<TrieNode, number>();
    this.forEachEdge((sequence, i, child) => edges.set(child, tokenLogProbs[sequence][i] / temperature));
    const result = this.sequences.map(() => 0);
    this.forEachEdge((sequence, _i, child, parent) => {
      const siblings = [...parent.children.values()].map((node) => edges.get(node)!);
      result[sequence] += edges.get(child)! - logSumExp(siblings);
    });
    return result;
  }

  private forEachEdge(visit: (sequence: number, index: number, child: TrieNode, parent: TrieNode) => void): void {
    this.sequences.forEach((tokens, sequence) => {
      let node = this.root;
      tokens.forEach((token, i) => {
        const child = node.children.get(token)!;
        visit(sequence, i, child, node);
        node = child;
      });
    });
  }

  /** Adds a path; gives the choice that stands at its end already. */
  private insert(tokens: readonly number[], choice: number): number | undefined {
    let node = this.root;
    for (const token of tokens) {
      let child = node.children.get(token);
      if (child === undefined) node.children.set(token, (child = createNode()));
      node = child;
    }
    const other = node.choice;
    node.choice ??= choice;
    return other;
  }

  private findNode(tokens: readonly number[]): TrieNode | undefined {
    let node: TrieNode | undefined = this.root;
    for (const token of tokens) node = node?.children.get(token);
    return node;
  }
}

/** log(sum of exp(values)). */
function logSumExp(values: readonly number[]): number {
  const max = Math.max(...values);
  if (max === -Infinity) return -Infinity;
  return max + Math.log(values.reduce((sum, value) => sum + Math.exp(value - max), 0));
}

function createNode(): TrieNode {
  return { children: new Map(), choice: undefined, allowedTokens: new Int32Array(0) };
}

function sortAllowedTokens(node: TrieNode): void {
  node.allowedTokens = Int32Array.from(node.children.keys()).sort();
  for (const child of node.children.values()) sortAllowedTokens(child);
}

function invalid(message: string): LlamaGymError {
  return new LlamaGymError("INVALID_ARGUMENT", message);
}
