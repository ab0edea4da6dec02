"""Runs the cookbook's DPO loop on comparisons of a file: preference_dpo.py MODEL COMPARISONS LOG_FOLDER"""
import sys

from tinker_cookbook.preference import train_dpo
from tinker_cookbook.preference.dpo_datasets import DPODatasetBuilderFromComparisons
from tinker_cookbook.preference.preference_datasets import ComparisonBuilderFromJsonl
from tinker_cookbook.supervised.types import ChatDatasetBuilderCommonConfig

model, comparisons, log_path = sys.argv[1:]
common = ChatDatasetBuilderCommonConfig(model_name_for_tokenizer=model, renderer_name="role_colon", max_length=128, batch_size=8)
builder = DPODatasetBuilderFromComparisons(common_config=common, comparison_builder=ComparisonBuilderFromJsonl(train_path=comparisons))
train_dpo.main(train_dpo.Config(log_path=log_path, model_name=model, recipe_name="test", dataset_builder=builder, renderer_name="role_colon", learning_rate=1e-3, lora_rank=8, save_every=0, eval_every=0, lr_schedule="constant"))
