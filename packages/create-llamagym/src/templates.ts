/** The templates, with one line about each. */
export const TEMPLATES: Readonly<Record<string, string>> = {
  blackjack: "An Agent class learns Blackjack",
  "own-env": "An environment in one file, with a test that it can be learned",
  "ai-sdk-agent": "An agent of the AI SDK with tools, trained through its URL",
  "mcp-tools": "A model learns to call the tools of an MCP server",
};
