import { dns1123LabelErrors, type KubeObject, labelValueErrors, type ObjectMeta } from '@keelson/core';
import { addressWarnings } from '../../../validation/address-warnings.ts';
import { sameJson } from '../../../validation/checks.ts';
import { deprecatedLabels } from '../../../validation/deprecated-labels.ts';
import { isWholeQuantity } from '../../../validation/quantities.ts';
import type {
  Container,
  ContainerPort,
  EphemeralContainer,
  NodeSelectorTerm,
  PodAffinity,
  PodSpec,
  Volume,
} from '../schema/index.ts';
import { eachContainer } from './default-pod-spec.ts';
import { overlapWarnings } from './overlapping-paths.ts';
import {
  appArmorContainer,
  appArmorProfileOf,
  hasProfileAnnotation,
  seccompContainer,
  seccompPod,
} from './pod-annotations.ts';

interface Template {
  readonly metadata?: ObjectMeta;
  readonly spec: PodSpec;
}

/** More warnings than a response contains are not collected. */
const maxWarnings = 100;
/** Earlier ports with the same number with which a port is compared, so that the work is proportional to the ports. */
const maxCompared = 16;

const deprecatedAnnotations = [
  ['scheduler.alpha.kubernetes.io/critical-pod', 'non-functional in v1.16+; use the "priorityClassName" field instead'],
  ['security.alpha.kubernetes.io/sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
  ['security.alpha.kubernetes.io/unsafe-sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
] as const;

const deprecatedVolumes: readonly (readonly [keyof Volume, string, string?])[] = [
  ['photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['gitRepo', 'deprecated in v1.11, and disabled by default in v1.33+'],
  ['scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['flocker', 'deprecated in v1.22, non-functional in v1.25+'],
  ['storageos', 'deprecated in v1.22, non-functional in v1.25+', 'storageOS'],
  ['quobyte', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['rbd', 'deprecated in v1.28, non-functional in v1.31+'],
];

/** A warning about the name of an object that is part of host names. */
export function nameWarnings(name: string, use = 'Pod names and hostnames'): string[] {
  const problems = dns1123LabelErrors(name);
  if (problems.length === 0) return [];
  const text = `metadata.name: this is used in ${use}, which can result in surprising behavior; a DNS label is recommended`;
  return [`${text}: [${problems.join(' ')}]`];
}

/** Warnings about the template of an object that is new or whose generation has changed. */
export function templateWarnings(
  object: KubeObject,
  old: KubeObject | undefined,
  template: Template | undefined,
  path = 'spec.template',
): string[] {
  if (!template || (old && old.metadata?.generation === object.metadata?.generation)) return [];
  return podSpecWarnings(template, path);
}

type Add = (warning: string) => void;

/**
 * Warnings about a valid pod or pod template, in the words of Kubernetes. `path` is that of the template, empty for a
 * pod. The work is proportional to the size of the template.
 */
export function podSpecWarnings({ metadata, spec }: Template, path: string): string[] {
  const warnings: string[] = [];
  const add: Add = (warning) => {
    if (warnings.length < maxWarnings) warnings.push(warning);
  };
  const root = path && `${path}.`;
  const annotations = metadata?.annotations;
  schedulingWarnings(spec, `${root}spec`, add);
  if (annotations) {
    for (const [key, text] of deprecatedAnnotations) {
      if (Object.hasOwn(annotations, key)) add(`${root}metadata.annotations[${key}]: ${text}`);
    }
  }
  if (spec.volumes) volumeWarnings(spec.volumes, `${root}spec.volumes`, add);
  listWarnings(spec, `${root}spec`, add);
  for (const name of byteResources) byteWarning(spec.overhead, name, `${root}spec.overhead`, add);
  if (annotations) profileWarnings({ metadata: { annotations }, spec }, root, path !== '', add);
  eachContainer(spec, `${root}spec`, (container, at) => {
    for (const name of byteResources) {
      byteWarning(container.resources?.limits, name, `${at}.resources.limits`, add);
      byteWarning(container.resources?.requests, name, `${at}.resources.requests`, add);
    }
    envWarnings(container, at, add);
  });
  portWarnings(spec, `${root}spec`, add);
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) {
    const text = 'must be >= 0; negative values are invalid and will be treated as 1';
    add(`${root}spec.terminationGracePeriodSeconds: ${text}`);
  }
  for (const field of ['podAffinity', 'podAntiAffinity'] as const) {
    podAffinityWarnings(spec.affinity?.[field], `${root}spec.affinity.${field}`, add);
  }
  spec.dnsConfig?.nameservers?.forEach((address, i) => {
    for (const text of addressWarnings(address, `${root}spec.dnsConfig.nameservers[${i}]`)) add(text);
  });
  spec.hostAliases?.forEach(({ ip }, i) => {
    for (const text of addressWarnings(ip, `${root}spec.hostAliases[${i}].ip`)) add(text);
  });
  return warnings;
}

function schedulingWarnings(spec: PodSpec, path: string, add: Add): void {
  for (const key in spec.nodeSelector) {
    const text = deprecatedLabels.get(key);
    if (text !== undefined) add(`${path}.nodeSelector[${key}]: ${text}`);
  }
  const node = spec.affinity?.nodeAffinity;
  const at = `${path}.affinity.nodeAffinity`;
  node?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms?.forEach((term, i) => {
    termWarnings(term, false, `${at}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[${i}]`, add);
  });
  node?.preferredDuringSchedulingIgnoredDuringExecution?.forEach(({ preference }, i) => {
    termWarnings(preference, true, `${at}.preferredDuringSchedulingIgnoredDuringExecution[${i}].preference`, add);
  });
  spec.topologySpreadConstraints?.forEach(({ topologyKey, labelSelector }, i) => {
    const own = `${path}.topologySpreadConstraints[${i}]`;
    const text = deprecatedLabels.get(topologyKey);
    if (text !== undefined) add(`${own}.topologyKey: ${topologyKey} is ${text}`);
    if (!labelSelector) add(`${own}.labelSelector: ${noPods}`);
  });
}

const noPods = 'a null labelSelector results in matching no pod';

function termWarnings(term: NodeSelectorTerm, withValues: boolean, path: string, add: Add): void {
  term.matchExpressions?.forEach(({ key, values }, i) => {
    const at = `${path}.matchExpressions[${i}]`;
    const text = deprecatedLabels.get(key);
    if (text !== undefined) add(`${at}.key: ${key} is ${text}`);
    if (!withValues) return;
    values?.forEach((value, j) => {
      for (const problem of labelValueErrors(value)) add(`${at}.values[${j}]: ${value} is invalid, ${problem}`);
    });
  });
}

function podAffinityWarnings(affinity: PodAffinity | undefined, path: string, add: Add): void {
  affinity?.requiredDuringSchedulingIgnoredDuringExecution?.forEach(({ labelSelector }, i) => {
    if (!labelSelector) add(`${path}.requiredDuringSchedulingIgnoredDuringExecution[${i}].labelSelector: ${noPods}`);
  });
  affinity?.preferredDuringSchedulingIgnoredDuringExecution?.forEach(({ podAffinityTerm }, i) => {
    const at = `${path}.preferredDuringSchedulingIgnoredDuringExecution[${i}].podAffinityTerm`;
    if (!podAffinityTerm?.labelSelector) add(`${at}.labelSelector: ${noPods}`);
  });
}

function volumeWarnings(volumes: readonly Volume[], path: string, add: Add): void {
  volumes.forEach((volume, i) => {
    for (const [source, text, shown = source] of deprecatedVolumes) {
      if (volume[source] !== undefined) add(`${path}[${i}].${shown}: ${text}`);
    }
    const claim = volume.ephemeral?.volumeClaimTemplate?.spec.resources;
    const at = `${path}[${i}].ephemeral.volumeClaimTemplate.spec.resources`;
    byteWarning(claim?.requests, 'storage', `${at}.requests`, add);
    byteWarning(claim?.limits, 'storage', `${at}.limits`, add);
  });
  overlapWarnings(volumes, add);
}

function listWarnings({ hostAliases, imagePullSecrets }: PodSpec, path: string, add: Add): void {
  if (!hostAliases && !imagePullSecrets) return;
  const repeated = (values: readonly string[], warn: (i: number, shown: string) => void) => {
    const seen = new Set<string>();
    values.forEach((value, i) => {
      if (seen.has(value)) warn(i, JSON.stringify(value));
      seen.add(value);
    });
  };
  const ips = (hostAliases ?? []).map(({ ip }) => ip);
  repeated(ips, (i, ip) => add(`${path}.hostAliases[${i}].ip: duplicate ip ${ip}`));
  const names = (imagePullSecrets ?? []).map(({ name }) => name ?? '');
  repeated(names, (i, name) => add(`${path}.imagePullSecrets[${i}].name: duplicate name ${name}`));
  names.forEach((name, i) => {
    if (!name) add(`${path}.imagePullSecrets[${i}].name: invalid empty name ""`);
  });
}

const byteResources = ['memory', 'ephemeral-storage'] as const;

function byteWarning(amounts: Record<string, string> | undefined, name: string, path: string, add: Add): void {
  const amount = amounts?.[name];
  if (amount === undefined || isWholeQuantity(amount)) return;
  add(`${path}[${name}]: fractional byte value ${JSON.stringify(amount)} is invalid, must be an integer`);
}

/** Warnings about annotations whose successors are fields. A pod gets the profiles of AppArmor from annotations. */
function profileWarnings(template: Template, root: string, isTemplate: boolean, add: Add): void {
  const { metadata: { annotations = {} } = {}, spec } = template;
  const seccomp = (key: string) => {
    if (!Object.hasOwn(annotations, key)) return;
    add(`${root}metadata.annotations[${key}]: non-functional in v1.27+; use the "seccompProfile" field instead`);
  };
  if (!hasProfileAnnotation(annotations)) return;
  if (!spec.securityContext?.seccompProfile) seccomp(seccompPod);
  eachContainer(spec, '', ({ name, securityContext }) => {
    if (!securityContext?.seccompProfile) seccomp(`${seccompContainer}${name}`);
    const key = `${appArmorContainer}${name}`;
    if (!isTemplate || securityContext?.appArmorProfile || !Object.hasOwn(annotations, key)) return;
    const [profile, pod] = [appArmorProfileOf(annotations[key] ?? ''), spec.securityContext?.appArmorProfile];
    if (pod && sameJson(profile, pod)) return;
    add(`${root}metadata.annotations[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`);
  });
}

function envWarnings({ env }: Container | EphemeralContainer, path: string, add: Add): void {
  if (!env || env.length < 2) return;
  const names = new Set<string>();
  env.forEach(({ name, value = '', valueFrom }, i) => {
    const reference = `$(${name})`;
    const keeps = !valueFrom && value !== reference && value.includes(reference);
    if (names.has(name) && !keeps) {
      const shown = JSON.stringify(name);
      add(`${path}.env[${i}]: hides previous definition of ${shown}, which may be dropped when using apply`);
    }
    names.add(name);
  });
}

function portWarnings(spec: PodSpec, path: string, add: Add): void {
  const ports: { readonly port: ContainerPort; readonly at: string; readonly i: number }[] = [];
  eachContainer(spec, path, (container, at) => {
    container.ports?.forEach((port, i) => void ports.push({ port, at, i }));
  });
  const placeOf = ({ at, i }: (typeof ports)[number]) => `${at}.ports[${i}]`;
  const known = new Map<string, typeof ports>();
  for (const entry of ports) {
    const { port } = entry;
    if (port.hostIP && !port.hostPort) add(`${placeOf(entry)}: hostIP set without hostPort: ${goText(port)}`);
    // Most pods have one port, which no other can repeat.
    if (ports.length === 1) return;
    const key = `${port.containerPort}/${port.protocol ?? ''}`;
    const others = known.get(key) ?? [];
    for (const other of others) {
      const relation = relationOf(port, other.port);
      if (relation !== undefined) add(`${placeOf(entry)}: ${relation} port definition with ${placeOf(other)}`);
    }
    if (others.length < maxCompared) others.push(entry);
    known.set(key, others);
  }
  const names = new Map<string, string>();
  for (const entry of ports) {
    const { name } = entry.port;
    if (!name) continue;
    const other = names.get(name);
    if (other === undefined) names.set(name, placeOf(entry));
    else {
      const text = `duplicate port name ${JSON.stringify(name)} with ${other}`;
      add(`${placeOf(entry)}: ${text}, services and probes that select ports by name will use ${other}`);
    }
  }
}

function relationOf(a: ContainerPort, b: ContainerPort): string | undefined {
  const [hostA, hostB, ipA, ipB] = [a.hostPort ?? 0, b.hostPort ?? 0, a.hostIP ?? '', b.hostIP ?? ''];
  if (ipA === ipB && hostA === hostB) return 'duplicate';
  if (hostA === 0 || hostB === 0) return 'overlapping';
  return hostA === hostB && (ipA === '') !== (ipB === '') ? 'dangerously ambiguous' : undefined;
}

/** A port as Go prints a structure. */
function goText({ name = '', hostPort = 0, containerPort = 0, protocol = '', hostIP = '' }: ContainerPort): string {
  return `{Name:${name} HostPort:${hostPort} ContainerPort:${containerPort} Protocol:${protocol} HostIP:${hostIP}}`;
}
