const reference = /\$(?:\$|\(([^()]*)\))/g;

/**
 * Replaces `$(NAME)` by the value of the variable. `$$` stands for `$`, so that `$$(NAME)` remains text; a reference to
 * an unknown variable is not replaced. Replaced text is not expanded again.
 */
export function expand(text: string, lookUp: (name: string) => string | undefined): string {
  return text.replace(reference, (match, name: string | undefined) =>
    name === undefined ? '$' : (lookUp(name) ?? match),
  );
}
