import type { RandomStream } from "../../../src/core/random/random-stream.js";
import type { Conversation } from "./conversation.js";

const SMALL_TALK: readonly (readonly [questions: readonly string[], answers: readonly string[]])[] = [
  [
    ["Hello", "Hello!", "Hi", "Hi there!", "Hey"],
    ["Hello! What shall we play?", "Hello! How can I help?"],
  ],
  [["Good morning", "Good evening!"], ["Hello! What shall we play?"]],
  [["How are you?", "How are you today?"], ["I am fine, thank you."]],
  [["Who are you?", "What are you?", "What is your name?"], ["I am a small language model that plays games."]],
  [["What can you do?", "How can you help me?"], ["I read what a game shows and answer with an action."]],
  [["Thanks", "Thank you!", "Thank you very much."], ["You are welcome."]],
  [["Bye", "Goodbye!", "See you"], ["Goodbye!"]],
  [["Are you a person?", "Are you human?"], ["No, I am a small language model."]],
  [["Do you know the best move?", "Are you good at games?"], ["Not yet. I have to learn it by playing."]],
  [["Tell me a story", "What is the capital of France?", "Write a poem"], ["I am too small for that. I play games."]],
];

/** A few turns of small talk. */
export function drawSmallTalk(random: RandomStream): Conversation {
  const turns = random.integers(1, 4);
  return {
    ...(random.random() < 0.5 ? {} : { system: random.choice(["You are a helpful assistant.", "Be friendly."]) }),
    exchanges: Array.from({ length: turns }, () => {
      const [questions, answers] = random.choice(SMALL_TALK);
      return { skill: "chat", user: random.choice(questions), assistant: random.choice(answers) };
    }),
  };
}
