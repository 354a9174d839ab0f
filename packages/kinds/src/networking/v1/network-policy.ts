import { defineKind, type FieldError, fieldError, type KindDefinition, portNameErrors } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { cidrWarnings } from '../../validation/address-warnings.ts';
import {
  checkCidr,
  checkLabelSelector,
  checkOneOf,
  checkText,
  type Errors,
  newErrors,
} from '../../validation/checks.ts';
import { isStrictSubset } from '../../validation/parse-address.ts';
import { checkPortNumber } from '../../validation/ports.ts';
import { selectorText } from '../../workload/workload-columns.ts';
import {
  type IPBlock,
  type NetworkPolicyPeer,
  type NetworkPolicyPort,
  NetworkPolicySchema,
  type NetworkPolicy as NetworkPolicyType,
} from './schema/index.ts';

/** States which traffic pods may have. The kind is stored and validated; a network plugin enforces it. */
export const NetworkPolicy: KindDefinition<NetworkPolicyType> = defineKind({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  names: { plural: 'networkpolicies', shortNames: ['netpol'] },
  schema: NetworkPolicySchema,
  strategy: {
    generation: 'spec',
    default({ spec }) {
      for (const rule of [...(spec.ingress ?? []), ...(spec.egress ?? [])]) {
        for (const port of rule.ports ?? []) port.protocol ??= 'TCP';
      }
      if (!spec.policyTypes?.length) spec.policyTypes = spec.egress?.length ? ['Ingress', 'Egress'] : ['Ingress'];
    },
    validate: validatePolicy,
    warnings: ({ spec }) => [
      ...(spec.ingress ?? []).flatMap(({ from }, i) => blockWarnings(from, `spec.ingress[${i}].from`)),
      ...(spec.egress ?? []).flatMap(({ to }, i) => blockWarnings(to, `spec.egress[${i}].to`)),
    ],
  },
  columns: [
    nameColumn(),
    column('Pod-Selector', 'string', 'Labels of the pods.', (policy: NetworkPolicyType) =>
      selectorText(policy.spec.podSelector),
    ),
    ageColumn,
  ],
});
export type NetworkPolicy = NetworkPolicyType;

function blockWarnings(peers: readonly NetworkPolicyPeer[] = [], path: string): string[] {
  return peers.flatMap(({ ipBlock }, i) => {
    if (!ipBlock) return [];
    const at = `${path}[${i}].ipBlock`;
    const { cidr, except = [] } = ipBlock;
    return [
      ...cidrWarnings(cidr, `${at}.cidr`),
      ...except.flatMap((one, j) => cidrWarnings(one, `${at}.except[${j}]`)),
    ];
  });
}

function validatePolicy({ spec }: NetworkPolicyType): FieldError[] {
  const errors = newErrors();
  checkLabelSelector(spec.podSelector, 'spec.podSelector', errors);
  spec.ingress?.forEach(({ ports, from }, i) => {
    checkPorts(ports, `spec.ingress[${i}].ports`, errors);
    checkPeers(from, `spec.ingress[${i}].from`, errors);
  });
  spec.egress?.forEach(({ ports, to }, i) => {
    checkPorts(ports, `spec.egress[${i}].ports`, errors);
    checkPeers(to, `spec.egress[${i}].to`, errors);
  });
  const types = spec.policyTypes ?? [];
  if (types.length > 2) {
    errors.push(fieldError.invalid('spec.policyTypes', types, 'may not specify more than two policyTypes'));
    return errors;
  }
  types.forEach((type, i) => {
    if (type === 'Ingress' || type === 'Egress') return;
    errors.push(fieldError.notSupported(`spec.policyTypes[${i}]`, type, ['Ingress', 'Egress']));
  });
  return errors;
}

function checkPorts(ports: readonly NetworkPolicyPort[] | undefined, path: string, errors: Errors): void {
  ports?.forEach(({ protocol, port, endPort }, i) => {
    const at = `${path}[${i}]`;
    checkOneOf(protocol, ['TCP', 'UDP', 'SCTP'], `${at}.protocol`, errors);
    if (typeof port === 'number') {
      checkPortNumber(port, `${at}.port`, errors);
      if (endPort === undefined) return;
      if (endPort < port) {
        errors.push(fieldError.invalid(`${at}.endPort`, port, 'must be greater than or equal to `port`'));
      }
      checkPortNumber(endPort, `${at}.endPort`, errors);
    } else if (port === undefined) {
      if (endPort === undefined) return;
      errors.push(fieldError.invalid(`${at}.endPort`, endPort, 'may not be specified when `port` is not specified'));
    } else {
      if (endPort !== undefined) {
        errors.push(fieldError.invalid(`${at}.endPort`, endPort, 'may not be specified when `port` is non-numeric'));
      }
      for (const detail of portNameErrors(port)) errors.push(fieldError.invalid(`${at}.port`, port, detail));
    }
  });
}

function checkPeers(peers: readonly NetworkPolicyPeer[] | undefined, path: string, errors: Errors): void {
  peers?.forEach(({ podSelector, namespaceSelector, ipBlock }, i) => {
    const at = `${path}[${i}]`;
    checkLabelSelector(podSelector, `${at}.podSelector`, errors);
    checkLabelSelector(namespaceSelector, `${at}.namespaceSelector`, errors);
    if (ipBlock) checkBlock(ipBlock, `${at}.ipBlock`, errors);
    if (!podSelector && !namespaceSelector && !ipBlock) {
      errors.push(fieldError.required(at, 'must specify a peer'));
    } else if (ipBlock && (podSelector || namespaceSelector)) {
      errors.push(fieldError.forbidden(at, 'may not specify both ipBlock and another peer'));
    }
  });
}

function checkBlock({ cidr, except = [] }: IPBlock, path: string, errors: Errors): void {
  if (!checkText(cidr, `${path}.cidr`, errors)) return;
  const range = checkCidr(cidr, `${path}.cidr`, errors);
  if (!range) return;
  except.forEach((one, i) => {
    const at = `${path}.except[${i}]`;
    const inner = checkCidr(one, at, errors);
    if (!inner || isStrictSubset(inner, range)) return;
    errors.push(fieldError.invalid(at, one, 'must be a strict subset of `cidr`'));
  });
}
