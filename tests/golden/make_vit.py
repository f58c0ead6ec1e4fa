"""vit_average.safetensors: average pooling, registers without positions, no class token or one (timm, f32).

Run with torch, timm and safetensors: python make_vit.py
"""
import torch
from safetensors.torch import save_file
from timm.models.vision_transformer import VisionTransformer

torch.manual_seed(0)
tensors = {"input": torch.randn(2, 3, 16, 24)}
for case, options in {
    "class": {"class_token": True, "reg_tokens": 2, "no_embed_class": True},
    "none": {"class_token": False, "reg_tokens": 0},
}.items():
    model = VisionTransformer(
        img_size=(16, 24), patch_size=8, embed_dim=16, depth=2, num_heads=2, num_classes=0, global_pool="avg", **options
    )
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    model.eval()
    feature = model(tensors["input"])
    (feature * torch.linspace(-1, 1, feature.numel()).reshape(feature.shape)).sum().backward()
    tensors[f"{case}.features"] = model.forward_features(tensors["input"]).detach()
    tensors[f"{case}.feature"] = feature.detach()
    for name, parameter in model.named_parameters():
        tensors[f"{case}.weights.{name}"] = parameter.detach()
        tensors[f"{case}.grad.{name}"] = parameter.grad
note = "timm VisionTransformer, global_pool='avg'; gradients of sum(feature * linspace(-1, 1))"
save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, "vit_average.safetensors", {"note": note})
