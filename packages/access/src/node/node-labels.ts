/** Labels under kubernetes.io and k8s.io that a node may set on its own Node object. */
const kubeletLabels: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
]);

/** A node may set every label below these domains. */
const kubeletDomains = ['kubelet.kubernetes.io', 'node.kubernetes.io'];
/** A node may not set labels below this domain. */
const restrictedDomain = 'node-restriction.kubernetes.io';
const reservedDomains = ['kubernetes.io', 'k8s.io'];

type Labels = Readonly<Record<string, string>>;

const isBelow = (namespace: string, domain: string): boolean =>
  namespace === domain || namespace.endsWith(`.${domain}`);

function isForbidden(label: string): boolean {
  const slash = label.indexOf('/');
  const namespace = slash === -1 ? '' : label.slice(0, slash);
  if (isBelow(namespace, restrictedDomain)) return true;
  if (!reservedDomains.some((domain) => isBelow(namespace, domain))) return false;
  return !kubeletLabels.has(label) && !kubeletDomains.some((domain) => isBelow(namespace, domain));
}

/** The labels that were added, changed or removed and that a node must not change on its Node object, sorted. */
export function forbiddenLabelChanges(labels: Labels = {}, old: Labels = {}): string[] {
  const names = new Set([...Object.keys(labels), ...Object.keys(old)]);
  return [...names].filter((name) => labels[name] !== old[name] && isForbidden(name)).sort();
}
