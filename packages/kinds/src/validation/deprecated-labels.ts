/** What is wrong with deprecated labels of nodes, and which ones replace them. */
export const deprecatedLabels: ReadonlyMap<string, string> = new Map([
  ['beta.kubernetes.io/arch', 'deprecated since v1.14; use "kubernetes.io/arch" instead'],
  ['beta.kubernetes.io/os', 'deprecated since v1.14; use "kubernetes.io/os" instead'],
  ['failure-domain.beta.kubernetes.io/region', 'deprecated since v1.17; use "topology.kubernetes.io/region" instead'],
  ['failure-domain.beta.kubernetes.io/zone', 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'],
  ['beta.kubernetes.io/instance-type', 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'],
  ['app.kubernetes.io/created-by', 'deprecated since v1.9'],
  ['scheduler.alpha.kubernetes.io/preferAvoidPods', 'deprecated since v1.22; use Taints and Tolerations instead'],
  ['node-role.kubernetes.io/master', 'use "node-role.kubernetes.io/control-plane" instead'],
]);

/** `path: advice` for a deprecated label of nodes. */
export function labelWarnings(key: string, path: string): string[] {
  const text = deprecatedLabels.get(key);
  return text === undefined ? [] : [`${path}: ${text}`];
}

/** Warnings about deprecated labels of nodes in the expressions of a selector. */
export function expressionWarnings(
  expressions: readonly { readonly key: string }[] | undefined,
  path: string,
): string[] {
  return (expressions ?? []).flatMap(({ key }, i) => {
    const text = deprecatedLabels.get(key);
    return text === undefined ? [] : [`${path}.matchExpressions[${i}].key: ${key} is ${text}`];
  });
}
