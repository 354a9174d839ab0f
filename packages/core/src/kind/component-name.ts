/**
 * Name under which OpenAPI documents show a message: the first two parts of the message's name change places
 * (`k8s.io.api.core.v1.Pod` -> `io.k8s.api.core.v1.Pod`). Names of fewer than three parts stay as they are.
 */
export function componentName(messageName: string): string {
  const [first, second, ...rest] = messageName.split('.');
  return rest.length === 0 ? messageName : [second, first, ...rest].join('.');
}
