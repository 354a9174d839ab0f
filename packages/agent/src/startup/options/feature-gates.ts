import { didYouMean, UsageError } from '@keelson/core/internal';

export type GateStage = 'ALPHA' | 'BETA' | '';

export interface FeatureGate {
  readonly name: string;
  /** Empty for a gate without a stage. */
  readonly stage: GateStage;
  readonly default: boolean;
}

const gate = (name: string, stage: GateStage, value: boolean): FeatureGate => ({ name, stage, default: value });
const alpha = (name: string): FeatureGate => gate(name, 'ALPHA', false);
const beta = (name: string, value = true): FeatureGate => gate(name, 'BETA', value);

/** Every gate of the specification. */
export const featureGates: readonly FeatureGate[] = [
  beta('APIListChunking'),
  alpha('APIResponseCompression'),
  alpha('Accelerators'),
  beta('AdvancedAuditing'),
  alpha('AllAlpha'),
  gate('AllowExtTrafficLocalEndpoints', '', true),
  beta('AppArmor'),
  alpha('BlockVolume'),
  beta('CPUManager'),
  alpha('CSIPersistentVolume'),
  alpha('CustomPodDNS'),
  beta('CustomResourceValidation'),
  alpha('DebugContainers'),
  alpha('DevicePlugins'),
  alpha('DynamicAgentConfig'),
  alpha('EnableEquivalenceClassCache'),
  alpha('ExpandPersistentVolumes'),
  alpha('ExperimentalCriticalPodAnnotation'),
  beta('ExperimentalHostUserNamespaceDefaulting', false),
  beta('HugePages'),
  alpha('Initializers'),
  alpha('AgentConfigFile'),
  alpha('LocalStorageCapacityIsolation'),
  alpha('MountContainers'),
  alpha('MountPropagation'),
  alpha('PVCProtection'),
  alpha('PersistentLocalVolumes'),
  alpha('PodPriority'),
  alpha('ResourceLimitsPriorityFunction'),
  beta('RotateAgentClientCertificate'),
  alpha('RotateAgentServerCertificate'),
  alpha('ServiceNodeExclusion'),
  beta('StreamingProxyRedirects'),
  beta('SupportIPVSProxyMode', false),
  alpha('TaintBasedEvictions'),
  alpha('TaintNodesByCondition'),
  alpha('VolumeScheduling'),
];

const names = featureGates.map(({ name }) => name);

/**
 * Returns the value of every gate. A gate that is named overrides AllAlpha, independent of the order; AllAlpha applies
 * to alpha gates only.
 *
 * @throws UsageError for a gate that does not exist
 */
export function resolveGates(given: ReadonlyMap<string, boolean>): Readonly<Record<string, boolean>> {
  for (const name of given.keys()) {
    if (names.includes(name)) continue;
    throw new UsageError(`--feature-gates: unrecognized key: ${name}${didYouMean(name, names)}`);
  }
  const allAlpha = given.get('AllAlpha') ?? false;
  return Object.freeze(
    Object.fromEntries(
      featureGates.map(({ name, stage, default: value }) => [
        name,
        given.get(name) ?? (allAlpha && stage === 'ALPHA' ? true : value),
      ]),
    ),
  );
}

/**
 * Gates that concern only other programs: they are parsed and reported. See
 * docs/reference/agent-rules.md#feature-gates.
 */
const otherPrograms = new Set([
  'APIListChunking',
  'APIResponseCompression',
  'AdvancedAuditing',
  'AllowExtTrafficLocalEndpoints',
  'CustomResourceValidation',
  'EnableEquivalenceClassCache',
  'ExpandPersistentVolumes',
  'Initializers',
  'PVCProtection',
  'ResourceLimitsPriorityFunction',
  'ServiceNodeExclusion',
  'StreamingProxyRedirects',
  'SupportIPVSProxyMode',
  'TaintBasedEvictions',
  'VolumeScheduling',
]);

/** Gates that the agent implements. */
const implemented = new Set([
  'AgentConfigFile',
  'AllAlpha',
  'DynamicAgentConfig',
  'ExperimentalCriticalPodAnnotation',
  'LocalStorageCapacityIsolation',
  'MountPropagation',
  'PodPriority',
  'RotateAgentClientCertificate',
]);

/**
 * Returns one warning that lists the gates with a value other than the default that the agent does not implement; none
 * when there is no such gate.
 */
export function gateWarnings(gates: Readonly<Record<string, boolean>>): string[] {
  const unused = featureGates.filter(
    ({ name, default: value }) => gates[name] !== value && !otherPrograms.has(name) && !implemented.has(name),
  );
  return unused.length === 0 ? [] : [`--feature-gates: no effect yet: ${unused.map(({ name }) => name).join(', ')}`];
}

/** Formats a gate for the help text: `PodPriority=true|false (ALPHA - default=false)`. */
export function gateText({ name, stage, default: value }: FeatureGate): string {
  return `${name}=true|false (${stage === '' ? '' : `${stage} - `}default=${value})`;
}
