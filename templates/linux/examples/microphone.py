#!/usr/bin/env python3
"""Send sound of a microphone to the service, chunk by chunk, and print what it answers.

Needs sounddevice (pip install sounddevice; sudo apt-get install libportaudio2) and numpy. It is written for models that
take one chunk of 16 kHz sound and a state that goes from chunk to chunk, such as detectors of speech: an output whose
shape is that of another input is given back to it. Models differ: change ``CHUNK`` and ``links``.
"""

import json
import urllib.request

import numpy as np
import sounddevice

SERVICE = "http://127.0.0.1:8080"
RATE, CHUNK = 16_000, 512


def ask(inputs: dict) -> dict:
    """Run the model once."""
    body = json.dumps({"inputs": inputs}).encode()
    request = urllib.request.Request(f"{SERVICE}/infer", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["outputs"]


def main() -> None:
    """Ask the service what it takes, and send sound until Ctrl-C."""
    with urllib.request.urlopen(SERVICE) as answer:
        about = json.load(answer)
    sound, *others = about["inputs"]
    state = {}
    for name in others:
        shape = [n if isinstance(n, int) else 1 for n in about["inputs"][name]["shape"]]
        # A model that asks for the sampling rate does so with one whole number.
        whole = about["inputs"][name]["dtype"] == "int64"
        state[name] = np.full(shape, RATE if whole else 0).tolist() if shape else (RATE if whole else 0.0)
    links = {
        output: name
        for output, told in about["outputs"].items()
        for name in others
        if len(told["shape"]) == len(about["inputs"][name]["shape"]) > 1
        and about["inputs"][name]["dtype"] == told["dtype"]
    }
    with sounddevice.InputStream(samplerate=RATE, channels=1, dtype="float32", blocksize=CHUNK) as stream:
        while True:
            chunk, _ = stream.read(CHUNK)
            outputs = ask({sound: chunk.T.tolist(), **state})
            for output, name in links.items():
                state[name] = {"shape": outputs[output]["shape"], "data": outputs[output]["data"]}
            print(
                {name: np.round(value["data"][:5], 3).tolist() for name, value in outputs.items() if name not in links}
            )


if __name__ == "__main__":
    main()
