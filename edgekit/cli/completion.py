"""``edgekit completion``: print the shell completion script."""

import click
from click.shell_completion import get_completion_class

from edgekit import console


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell completion script.

    \b
    Example:
      edgekit completion bash >> ~/.bashrc
      edgekit completion zsh  >> ~/.zshrc
      edgekit completion fish > ~/.config/fish/completions/edgekit.fish
    """
    maker = get_completion_class(shell)
    if maker is None:
        raise click.UsageError(f"No completion for {shell}.", ctx)
    console.data(maker(ctx.find_root().command, {}, "edgekit", "_EDGEKIT_COMPLETE").source())
