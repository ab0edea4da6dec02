import { createChoiceText } from "../text-parsing.js";
/** LlamaGym's Blackjack prompt, extended by the dealer's card and the usable ace. */
export const blackjackText = createChoiceText({
    systemPrompt: "You are an expert blackjack player. Come closer to 21 than the dealer without going over it. Answer hit to take another card or stay to stop.",
    formatObservation: ([sum, dealerCard, usableAce]) => `Your current total is ${sum}. The dealer shows ${dealerCard === 1 ? "ace" : dealerCard}. You have ${usableAce === 1 ? "a" : "no"} usable ace. hit or stay?`,
    names: ["stay", "hit"],
    synonyms: { stick: 0, stand: 0 },
});
