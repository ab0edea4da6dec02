import { logSumExp } from "../../core/numbers.js";
import { invalidArgument } from "../../core/errors.js";
import { excerpt } from "../../core/format.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { sampleIndex } from "../../core/random/sample-index.js";
import type { Tokenizer } from "../../models/text/index.js";
import type { ChoiceResult } from "../completion.js";
import type { CompiledConstraint, ConstraintCursor } from "./compiled-constraint.js";

interface TrieNode {
  readonly children: Map<number, TrieNode>;
  /** Index of the choice that ends here. */
  choice: number | undefined;
  /** Token ids of the children, in ascending order. */
  allowedTokens: Int32Array;
}

/**
 * Constrains a completion to a list of choices, each a sequence of tokens in a trie. A choice ends
 * where nothing may follow; one that is a prefix of another ends with the end token. The
 * probability of a choice is the product, over its tokens, of p(token) / sum of p over the tokens
 * allowed there.
 */
export class ChoiceConstraint implements CompiledConstraint {
  /** The tokens of each choice, with the end token where it is needed. */
  readonly sequences: readonly (readonly number[])[];
  /** Length of the longest choice. */
  readonly maxLength: number;
  private readonly root = createNode();

  /**
   * @param texts of the choices, for `encode` and messages.
   * @throws INVALID_ARGUMENT for an empty list, an empty choice, two choices with equal tokens, and
   * a choice that needs an end token if the model has none.
   */
  constructor(
    choices: readonly (readonly number[])[],
    endToken: number | undefined,
    private readonly texts: readonly string[] = choices.map((tokens) => tokens.join(" ")),
  ) {
    if (choices.length === 0) throw invalidArgument("The list of choices is empty; pass at least one.");
    const name = (index: number) => excerpt(JSON.stringify(texts[index]));
    choices.forEach((tokens, index) => {
      if (tokens.length === 0) throw invalidArgument(`The choice ${name(index)} has no tokens.`);
      const other = this.insert(tokens, index);
      if (other !== undefined)
        throw invalidArgument(`The choices ${name(other)} and ${name(index)} have the same tokens; remove one.`);
    });
    this.sequences = choices.map((tokens, index) => {
      const node = this.findNode(tokens)!;
      if (node.children.size === 0) return tokens;
      if (endToken === undefined)
        throw invalidArgument(`The choice ${name(index)} is a prefix of another, and this model has no end token.`);
      const withEndToken = [...tokens, endToken];
      const other = this.findNode(withEndToken)?.choice;
      if (other !== undefined)
        throw invalidArgument(`The choice ${name(other)} is ${name(index)} with an end token; remove one.`);
      return withEndToken;
    });
    this.sequences.forEach((tokens, index) => {
      if (tokens.length === choices[index].length) return;
      this.findNode(choices[index])!.choice = undefined;
      this.insert(tokens, index);
    });
    sortAllowedTokens(this.root);
    this.maxLength = this.sequences.reduce((max, { length }) => Math.max(max, length), 0);
  }

  /**
   * Tokenizes choices that follow `previousToken`, without special tokens. Throws as the
   * constructor does.
   */
  static fromTexts(
    tokenizer: Tokenizer,
    choices: readonly string[],
    { previousToken, endToken }: { previousToken: number | undefined; endToken: number | undefined },
  ): ChoiceConstraint {
    const { splitSpecialTokens } = tokenizer;
    const tokens = choices.map((choice) => tokenizer.encodeContinuation(choice, previousToken, { splitSpecialTokens }));
    return new ChoiceConstraint(tokens, endToken, choices);
  }

  cursor(): ConstraintCursor {
    return new ChoiceCursor(this.root);
  }

  encode(text: string): readonly number[] | undefined {
    const index = this.texts.indexOf(text);
    return index === -1 ? undefined : this.sequences[index];
  }

  /** Returns the index of the choice with these tokens; undefined if there is none. */
  findChoice(tokens: readonly number[]): number | undefined {
    return this.findNode(tokens)?.choice;
  }

  /**
   * Returns each choice's log-probability under the constraint, given the model's for the tokens of
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

  /**
   * Samples a choice, or takes the most probable one at temperature 0. Needs the scores that
   * `logProbs` does.
   */
  choose(
    tokenLogProbs: readonly (readonly number[])[],
    temperature: number,
    random: RandomStream,
  ): Omit<ChoiceResult, "choice"> {
    const logProbs = this.logProbs(tokenLogProbs, temperature || 1);
    const probabilities = logProbs.map(Math.exp);
    const index =
      temperature === 0 ? logProbs.indexOf(Math.max(...logProbs)) : sampleIndex(probabilities, random.random());
    return { index, logProb: logProbs[index], probabilities };
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

  /** Adds a path and returns the choice that already ended there, if any. */
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

class ChoiceCursor implements ConstraintCursor {
  constructor(private node: TrieNode) {}

  get allowedTokens(): Int32Array {
    return this.node.allowedTokens;
  }

  get isComplete(): boolean {
    return this.node.choice !== undefined;
  }

  advance(token: number): void {
    this.node = this.node.children.get(token) ?? createNode();
  }
}

function createNode(): TrieNode {
  return { children: new Map(), choice: undefined, allowedTokens: new Int32Array(0) };
}

function sortAllowedTokens(root: TrieNode): void {
  const nodes = [root];
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    node.allowedTokens = Int32Array.from(node.children.keys()).sort();
    for (const child of node.children.values()) nodes.push(child);
  }
}
