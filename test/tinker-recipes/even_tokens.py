"""Rewards even tokens with the SDK alone: even_tokens.py MODEL. Prints the reward of each step, then the largest difference between the
log-probabilities of sampling and of training."""
import json, sys
import tinker
from tinker import types

client = tinker.ServiceClient().create_lora_training_client(base_model=sys.argv[1], rank=8, seed=1)
prompt = [5, 6, 7, 8]
rewards, differences = [], []
for _ in range(8):
    sampler = client.save_weights_and_get_sampling_client()
    params = types.SamplingParams(max_tokens=8, temperature=1.0, seed=len(rewards))
    sequences = sampler.sample(types.ModelInput.from_ints(prompt), 32, params).result().sequences
    scores = [sum(token % 2 == 0 for token in each.tokens) / len(each.tokens) for each in sequences]
    mean = sum(scores) / len(scores)
    data = []
    for each, score in zip(sequences, scores):
        tokens = prompt + list(each.tokens)
        zeros, count = [0.0] * (len(prompt) - 1), len(each.tokens)
        inputs = {"target_tokens": tokens[1:], "logprobs": zeros + list(each.logprobs), "advantages": zeros + [score - mean] * count}
        data.append(types.Datum(model_input=types.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs))
    result = client.forward_backward(data, "importance_sampling")
    client.optim_step(types.AdamParams(learning_rate=1e-2)).result()
    for each, output in zip(sequences, result.result().loss_fn_outputs):
        trained = output["logprobs"].data[len(prompt) - 1 :]
        differences += [abs(a - b) for a, b in zip(trained, each.logprobs)]
    rewards.append(mean)
print(json.dumps({"rewards": rewards, "difference": max(differences)}))
