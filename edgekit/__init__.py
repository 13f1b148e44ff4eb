"""edgekit: ship an ONNX model to browsers and edge devices, with proof that it gives the same answers."""

__version__ = "0.1.0"
