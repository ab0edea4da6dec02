"""Trains decisions as the cookbook's recipe does: decisions.py MODEL. Prints the probability of the right choice before and after, with
targets of one token and, for a loss of the client, of all choices."""
import asyncio, json, sys
import tinker
from tinker_cookbook import renderers
from tinker_cookbook.recipes.decisions import Decision, DecisionRenderer, sample_decision
from tinker_cookbook.recipes.decisions.train import decision_choice_datums, decision_dist_datums, probability_loss
from tinker_cookbook.tokenizer_utils import get_tokenizer

model = sys.argv[1]
renderer = DecisionRenderer(renderers.get_renderer("llama3", get_tokenizer(model)))
teams = [("billing", "invoices and prices"), ("sdk", "the Python package"), ("console", "the web page")]
asked = [("Where is my invoice?", "billing"), ("What does import tinker do?", "sdk"), ("How do I sign in on the page?", "console")]
examples = [(Decision(text, teams), team) for text, team in asked]


async def main():
    service = tinker.ServiceClient()
    result = {}
    for name in ("cross_entropy", "custom"):
        client = await service.create_lora_training_client_async(base_model=model, rank=8, seed=1)

        async def measure():
            sampler = await client.save_weights_and_get_sampling_client_async()
            found = [(await sample_decision(sampler, renderer.render(each)))[team] for each, team in examples]
            return sum(found) / len(found)

        before = await measure()
        for _ in range(10):
            if name == "custom":
                data = decision_dist_datums(renderer, [(each, {team: 1.0}) for each, team in examples])
                loss = probability_loss(lambda probs, targets: ((probs - targets) ** 2).sum())
                step = await client.forward_backward_custom_async(data, loss)
            else:
                step = await client.forward_backward_async(decision_choice_datums(renderer, examples), "cross_entropy")
            await (await client.optim_step_async(tinker.AdamParams(learning_rate=1e-3)))
            await step
        result[name] = [before, await measure()]
    print(json.dumps(result))


asyncio.run(main())
