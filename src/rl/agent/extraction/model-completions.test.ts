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
