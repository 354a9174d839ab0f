const reference = /\$(?:\$|\(([^()]*)\))/g;

/**
 * Replaces `$(NAME)` by the value of the variable. `$$` stands for `$`, so that `$$(NAME)` stays as text; a variable
 * that is not known stays as it is written. What was replaced is not looked at again.
 */
export function expand(text: string, lookUp: (name: string) => string | undefined): string {
  return text.replace(reference, (match, name: string | undefined) =>
    name === undefined ? '$' : (lookUp(name) ?? match),
  );
}
