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

describe("completions of SmolLM2-135M-Instruct", () => {
  describe("at Blackjack", () => {
    const read = createReader(["stay", "hit"]);
    it.each<Row>([
      [
        "To calculate the probability of an ace being hit, we need to calculate the probability of the number 7 being hit initially given that it is a certainty that a single ace will eventually be hit.\n\nFirst, we calculate the probability of a single ace being hit given that the deck contains only one",
        FAILURE,
      ],
      [
        'Players often use "hit" and "stay" and use them as a shorthand for "not possible to lose." In reality, they are not. So the rules do not really apply here. So I\'m going to play the "hits and stays to stop" variant. You will have',
        FAILURE,
      ],
      [
        "Let's break down the situation: The dealer shows a 6. This does not directly translate to a hit or a stay, as there is no applicable option beyond just stopping. However, there's a possible middle ground – the card could end down by 10, but there's only a",
        FAILURE,
      ],
      [
        "You have 3 at random from the 4 you can think of, so you can't hit with 1 or stay. So you stay to avoid \"hit\", but can't have a set total, right? So decide to keep the game open while trying to figure how to avoid 'hit",
        "mention",
        "stay",
      ],
      [
        "Since you lose, it's safe to assume you lost to the dealer against the dealer being 21 without going over 20 from the other side. ",
        FAILURE,
      ],
      ["No, you've got just enough cards in your hand.", FAILURE],
      ["Lemon 10. You have just dealt 10 of the most valuable cards.", FAILURE],
      [
        "No. You have 7 left, so stick with your hand. You get to get another card, one without going over again, which gives you 4 more non-ace cards.",
        FAILURE,
      ],
      ["So what do I do next?", FAILURE],
    ])("%j is %s %s", (reply, kind, action) => {
      expect(read(reply)).toEqual([kind, action]);
    });
  });

  describe("in FrozenLake", () => {
    const read = createReader(["left", "down", "right", "up"]);
    it.each<Row>([
      [
        "What does the puzzle look like for the left-tail case? The left-tail case is a classic example of lateral thinking. It's a clever puzzle that requires considering both sides. In this particular puzzle, you have to choose one direction and switch it (up or down) without flipping any objects",
        FAILURE,
      ],
      [
        "You're too right, I don't have anymore for the previous puzzle we discussed. The puzzle is about looking at the opposite direction, looking at a direction, but as a lateral thinking puzzle, it's difficult to say where you were.",
        FAILURE,
      ],
      [
        "You're right, let's focus on the other one of a lateral thinking puzzle, the puzzle you asked. The puzzle about two right triangles. It's a classic lateral thinking puzzle called a lateral thinking puzzle because the puzzle requires looking at two opposite sides",
        FAILURE,
      ],
      [
        "You're right, this is a classic lateral thinking puzzle. The puzzle requires looking at two opposite rows that are either up, down, or both. You can only find one row that can fit the puzzle by flipping the entire row upside down. It's a classic lateral thinking puzzle. You can only",
        FAILURE,
      ],
      [
        'That\'s a classic puzzle called "Red, White, And None": moving down the ice. You can choose anything except either side to maintain consistency.',
        "mention",
        "down",
      ],
      [
        'My top hat, also not my reflection. Instead of "Up to top hat" or "Top hat," I chose "The left edge, down the ice." This is a great example of how having an identity that has no boundaries can create a special atmosphere around yourself. You can choose anything and',
        FAILURE,
      ],
      ["The answer is left.", "mention", "left"],
    ])("%j is %s %s", (reply, kind, action) => {
      expect(read(reply)).toEqual([kind, action]);
    });
  });

  describe("in a two-armed bandit", () => {
    const read = createReader(["Golden Goose", "Cursed Well"]);
    it.each<Row>([
      [
        "It appears to me that I pull the Curse Well at the beginning. I have to make a choice. I pull Golden Goose.",
        "mention",
        "Golden Goose",
      ],
      ["Cursed Well: Not left. Golden Goose: Yes.", "mention", "Golden Goose"],
      ["Cursed Well: Yes.", "mention", "Cursed Well"],
      ["Cursed Well: No.", FAILURE],
      ["Cursed Well: 6 pulls right.", "mention", "Cursed Well"],
      [
        "I see there is no solution. 10 pulls left is still not possible since there is no way to pull more coins after 10 comes in is just another example of not knowing what is coming after what you did.",
        FAILURE,
      ],
      [
        'Now I\'ll not have to choose. "golden Goose" has pulled 8 pulls and has done nothing so I will not have any other action but "golden Goose has pulled 8 pulls on her 3rd draw. Here she is again, now it will be 5 pulls."',
        FAILURE,
      ],
      [
        "When it comes to determining whether to draw Goldie for Cups of Grey or to draw Golden Goose for Cups, the answer lies in the specific scenario. On one hand, Cups of Grey, which refers to the game's name.",
        FAILURE,
      ],
    ])("%j is %s %s", (reply, kind, action) => {
      expect(read(reply)).toEqual([kind, action]);
    });
  });

  describe("in Taxi, Sokoban and TextWorld", () => {
    it.each<Row>([
      [
        "We've already filled up with a customer at row 2, which is row 2 column 1. This means that row 2 is the only corner where there's a remaining passenger within the specified row of no return.",
        FAILURE,
      ],
      ["You've already added a customer, so there's only 1 row left. Row 1 ends.", FAILURE],
    ])("%j is %s %s", (reply, kind, action) => {
      expect(createReader(["south", "north", "east", "west", "pick up", "drop off"])(reply)).toEqual([kind, action]);
    });
    it.each<Row>([
      [
        "The baton moves on its own. It is always right. You can move the baton and move it again whenever it wants. It is impossible to do two things at once.",
        FAILURE,
      ],
      ["Ladri was a big thing, but you know how it is. No one goes down.", FAILURE],
      [
        "You've come a long way, but no one has come the way you've promised. You'd been so far, and there's nothing left to do.\n\nYou made a new adventure, you've met someone you've been trying to leave. You have to take a train, right?",
        FAILURE,
      ],
      ["You're just a magic trick, a magic, you just know magic, you're just going home, right", FAILURE],
    ])("%j is %s %s", (reply, kind, action) => {
      expect(createReader(["up", "down", "left", "right"])(reply)).toEqual([kind, action]);
    });
    it.each<Row>([
      [
        "That's confusing, but you're right. The walnut gate is open again. Now what?\n\nGo west.\n\nYou've done it.\n\nYou can continue on to the next floor.\n\nDo you want to take the elevator?",
        "choice",
        "go west",
      ],
      ["go west", "choice", "go west"],
      ["What is this?", FAILURE],
      [
        'You\'ve found a photograph inside the veranda.\n\nLook. You\'re going to pick it up.\n"I\'ve got it."\nYou take it and put it in the bag.\n"Yes. This is my key."',
        FAILURE,
      ],
      ["You've just got your way. Now you're going to help me.\n\n*\n*\n*\n*\n*\n*", FAILURE],
    ])("%j is %s %s", (reply, kind, action) => {
      expect(createReader(["go west", "look", "inventory", "take photograph"])(reply)).toEqual([kind, action]);
    });
  });
});

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
