import { describe, expect, it } from "vitest";
import { actionExtractors, extractAction } from "./index.js";

/** A reply and what it means: a choice and how it was found, or a failure. */
type Row = [reply: string, kind: string, action?: string];

const FAILURE = "failure";

/** What replies mean where these choices are possible. */
function createReader(choices: readonly string[], parse?: (text: string) => string | undefined) {
  const strategies = parse === undefined ? actionExtractors({ choices }) : actionExtractors({ choices }, parse);
  return (reply: string) => {
    const { kind, value } = extractAction(reply, strategies);
    return [kind, value];
  };
}

describe("completions in formats that models use", () => {
  const hitOrStay = createReader(["stay", "hit"]);
  it.each<Row>([
    ['{"action": "hit"}', "json", "hit"],
    ['```json\n{"action": "hit"}\n```', "json", "hit"],
    ['Sure! Here it is:\n```\n{ "action": "Hit" }\n```\nGood luck!', "json", "hit"],
    ["I think {'action': 'hit'} is best, not stay.", "json", "hit"],
    ['{"thought": "16 is low, do not stay", "action": "hit",}', "json", "hit"],
    ["{'sure': True, 'reason': None, 'action': 'stay'}", "json", "stay"],
    ['{action: "stay"}', "json", "stay"],
    ["{“action”: “stay”}", "json", "stay"],
    ['{"action": "hit"} no wait {"action": "stay"}', "json", "stay"],
    ['{"action": "hit", // low\n "why": "a\nb"}', "json", "hit"],
    ['{"response": {"thoughts": ["stay?"], "Action": "HIT"}}', "json", "hit"],
    ['{"action": {"move": "hit"}}', "json", "hit"],
    ['[{"action": "hit"}, {"action": "stay"}]', "json", "stay"],
    ['{"answer": 1}', "json", "hit"],
    ['{"thought": "I should hit", "action": "sta', "mention", "hit"],
    ['{"thought": "low", "action": "hit"', "json", "hit"],
    ['{"action": "I will hit, because 12 is low"}', "json", "hit"],
    ['{"action": "fold", "why": "stay is bad, hit too"}', FAILURE],
    ['{"action": "hit or stay"}', FAILURE],
    ['{"action": null} so I hit', "mention", "hit"],
    ['"hit"', "json", "hit"],
    ["1", "json", "hit"],
    ["{hit}", "choice", "hit"],
    ['{{"action": "hit"}}', "json", "hit"],
    ["<action>hit</action>", "tag", "hit"],
    ["<think>stay or hit? stay!</think><action>hit</action>", "tag", "hit"],
    ["<Action>\n  HIT\n</Action>", "tag", "hit"],
    ["<action>hit", "tag", "hit"],
    ["<action>stay</action> <action>hit</action>", "tag", "hit"],
    ["<answer>fold</answer>, though hit is near", FAILURE],
    ["Action: hit", "tag", "hit"],
    ["Thought: 16 is risky.\nAction: stay", "tag", "stay"],
    ["**Action:** hit", "tag", "hit"],
    ["**Final answer: Stay.**", "tag", "stay"],
    ["### Action\n\nhit", "choice", "hit"],
    ["Action:\nhit", "tag", "hit"],
    ["- Answer = hit", "tag", "hit"],
    ["The answer is: stay", "tag", "stay"],
    ["So my move is: hit.", "tag", "hit"],
    ["\\boxed{hit}", "tag", "hit"],
    ["$\\boxed{\\text{stay}}$", "tag", "stay"],
    ["Action: hit\nObservation: the dealer busts\nAction: stay", "tag", "hit"],
    ["hit\nUser: and now?\nstay", "choice", "hit"],
    ["Action: hit or stay?", FAILURE],
    ["hit", "choice", "hit"],
    ["HIT!", "choice", "hit"],
    ['"Hit."', "json", "hit"],
    ["**hit**", "choice", "hit"],
    ["`stay`", "choice", "stay"],
    [" - stay\n", "choice", "stay"],
    ["(hit)", "choice", "hit"],
    ["hit 🎲", "mention", "hit"],
    ["Hit.\n\nWith 12 the risk is small.", "choice", "hit"],
    ["Hit. With 12 you rarely lose.", "mention", "hit"],
    ["With 12 you rarely lose, so hit.", "mention", "hit"],
    ["I would stay. The dealer must take cards, and many of them lose. Good luck.", "mention", "stay"],
    ["You have 18. I'll stay, since most cards would end the game if you hit. Let me know!", "mention", "stay"],
    ["Let's hit", "mention", "hit"],
    ["I could hit, but I stay.", "mention", "stay"],
    ["Don't hit! Stay.", "mention", "stay"],
    ["I would rather stay than hit.", "mention", "stay"],
    ["stay, not hit", "mention", "stay"],
    ["Hit rather than stay", "mention", "hit"],
    ["The best move here is to hit, even though stay looks safe. It pays in the long run.", "mention", "hit"],
    ["Should I hit or stay?", FAILURE],
    ["Should I hit? The dealer has a 10. I stay.", "mention", "stay"],
    ["hit or stay", FAILURE],
    ["Hit/Stay", FAILURE],
    ["I neither hit nor stay", FAILURE],
    ["hit hit hit hit hit", "mention", "hit"],
    ["#1", "number", "hit"],
    ["Option 1", "number", "hit"],
    ["I choose option 0.", "number", "stay"],
    ["7", FAILURE],
    ["I have 16, the dealer 10.", FAILURE],
    ["stey", "nearest", "stay"],
    ["Sttay.", "nearest", "stay"],
    ["hti", FAILURE],
    ["stayy!!!", "nearest", "stay"],
    ["white", FAILURE],
    ["That would hitch the card", FAILURE],
    ["", FAILURE],
    ["   \n", FAILURE],
    ["...", FAILURE],
    ["<think>I will hit", FAILURE],
    ["<think>I will hit</think>", FAILURE],
    ["12 is low</think>\n\nhit", "choice", "hit"],
    ["<reasoning>stay?</reasoning>hit", "choice", "hit"],
    ["User: hit", FAILURE],
    ["I am an AI and cannot gamble.", FAILURE],
    ["打", FAILURE],
    ["{".repeat(500), FAILURE],
    ["[".repeat(500), FAILURE],
    ["hit ".repeat(2000), "mention", "hit"],
  ])("%j is %s %s", (reply, kind, action) => {
    expect(hitOrStay(reply)).toEqual([kind, action]);
  });

  it.each<Row>([
    ["go_north", "choice", "go north"],
    ["GO-NORTH", "choice", "go north"],
    ["> go north", "choice", "go north"],
    ["I pick-up the key and go north", "mention", "go north"],
    ["Then I'll pick up.", "mention", "pick up"],
    ["pick up, pick up", "mention", "pick up"],
    ["pickup", "nearest", "pick up"],
    ["move up", "mention", "up"],
    ["go nort", "nearest", "go north"],
    ["go forth", "nearest", "go north"],
    ["go_noth and look", FAILURE],
    ["You are right, there are 3 moves left.", FAILURE],
    ["Move 2 steps left", "mention", "left"],
    ["My answer would be right", "mention", "right"],
    ["right", "choice", "right"],
    ["All right! Left.", "mention", "left"],
    ["Let me break this down. Up leads to a hole. I go right.", "mention", "right"],
    ["The top-right corner is a hole, so go left.", "mention", "left"],
    ["left -> right -> right", "mention", "right"],
    ["right, then up", "mention", "up"],
  ])("%j is %s %s", (reply, kind, action) => {
    expect(createReader(["go north", "pick up", "up", "left", "right"])(reply)).toEqual([kind, action]);
  });

  it.each<Row>([
    ["B", "choice", "B"],
    ["(b)", "choice", "B"],
    ["I choose A.", "mention", "A"],
    ["I would pick a card.", FAILURE],
    ["A is best", "mention", "A"],
    ["A good question, I take C", "mention", "C"],
    ["Answer: C) because", "tag", "C"],
    ["Answer: A, B or C", FAILURE],
  ])("%j is %s %s", (reply, kind, action) => {
    expect(createReader(["A", "B", "C"])(reply)).toEqual([kind, action]);
  });

  it.each<Row>([
    ["stand", "function", "stay"],
    ["Action: stand", "tag", "stay"],
    ['{"action": "stick"}', "json", "stay"],
    ["hit", "choice", "hit"],
    ["I stand here and think about what all of this may mean to me", FAILURE],
  ])("%j is %s %s where an environment knows more names", (reply, kind, action) => {
    const parse = (text: string) => (/stick|stand|stay/.test(text) ? "stay" : /hit/.test(text) ? "hit" : undefined);
    expect(createReader(["stay", "hit"], parse)(reply)).toEqual([kind, action]);
  });
});
