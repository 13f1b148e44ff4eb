#!/usr/bin/env python3
"""Send pictures of a camera to the service, and print what it answers.

Needs picamera2 (on a Raspberry Pi: sudo apt-get install python3-picamera2) or OpenCV (python3-opencv), and numpy.
The picture is scaled to the input's size, to numbers from 0 to 1, channels first. Models differ: change ``prepare``.
"""

import json
import sys
import urllib.request

import numpy as np

SERVICE = "http://127.0.0.1:8080"


def frames(width: int, height: int):
    """Yield pictures as uint8 arrays [height, width, 3], red first."""
    try:
        from picamera2 import Picamera2
    except ModuleNotFoundError:
        import cv2

        camera = cv2.VideoCapture(0)
        while True:
            there, picture = camera.read()
            if not there:
                sys.exit("The camera gives no pictures.")
            yield cv2.cvtColor(cv2.resize(picture, (width, height)), cv2.COLOR_BGR2RGB)
    else:
        camera = Picamera2()
        camera.configure(camera.create_video_configuration({"size": (width, height), "format": "BGR888"}))
        camera.start()
        while True:
            yield camera.capture_array()[:height, :width, :3]


def prepare(picture: np.ndarray, channels: int) -> np.ndarray:
    """Return a picture as the model takes it, float32 [1, channels, height, width]."""
    numbers = picture.astype(np.float32) / 255
    if channels == 1:
        numbers = numbers.mean(axis=2, keepdims=True)
    return numbers.transpose(2, 0, 1)[None]


def main() -> None:
    """Ask the service what it takes, and send pictures until Ctrl-C."""
    with urllib.request.urlopen(SERVICE) as answer:
        name, about = next(iter(json.load(answer)["inputs"].items()))
    channels, height, width = (n if isinstance(n, int) else 224 for n in about["shape"][-3:])
    for picture in frames(width, height):
        body = json.dumps({"inputs": {name: prepare(picture, channels).tolist()}}).encode()
        request = urllib.request.Request(f"{SERVICE}/infer", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            for output, value in json.load(answer)["outputs"].items():
                print(output, np.round(value["data"][:10], 3).tolist())


if __name__ == "__main__":
    main()
