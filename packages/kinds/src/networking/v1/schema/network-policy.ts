import {
  always,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  labelSelectorSchema,
  optional,
  type Schema,
  s,
} from '@keelson/core';

const ipBlock = s.message('k8s.io.api.networking.v1.IPBlock', 'Addresses that a rule permits.', {
  cidr: always(1, s.string(), 'Range of addresses, such as 192.168.1.0/24.'),
  except: optional(2, s.list(s.string(), { listType: 'atomic' }), 'Parts of the range that are not permitted.'),
});
export interface IPBlock extends Infer<typeof ipBlock> {}
export const IPBlockSchema: Schema<IPBlock> = ipBlock;

const networkPolicyPeer = s.message(
  'k8s.io.api.networking.v1.NetworkPolicyPeer',
  'Who may connect, or be connected to.',
  {
    podSelector: optional(1, labelSelectorSchema, 'Labels of pods; an empty selector matches all pods.'),
    namespaceSelector: optional(
      2,
      labelSelectorSchema,
      'Labels of the namespaces of the pods; unset means the namespace of the policy.',
    ),
    ipBlock: optional(3, IPBlockSchema, 'Addresses; not together with a selector.'),
  },
);
export interface NetworkPolicyPeer extends Infer<typeof networkPolicyPeer> {}
export const NetworkPolicyPeerSchema: Schema<NetworkPolicyPeer> = networkPolicyPeer;

const networkPolicyPort = s.message('k8s.io.api.networking.v1.NetworkPolicyPort', 'Ports that a rule permits.', {
  protocol: optional(1, s.string({ values: ['SCTP', 'TCP', 'UDP'] }), 'TCP, UDP or SCTP; TCP by default.', {
    presence: true,
  }),
  port: optional(2, s.intOrString(), 'Number or name of the port; unset means all ports.', { presence: true }),
  endPort: optional(3, s.int32(), 'Last port of a range that begins at the number.', { presence: true }),
});
export interface NetworkPolicyPort extends Infer<typeof networkPolicyPort> {}
export const NetworkPolicyPortSchema: Schema<NetworkPolicyPort> = networkPolicyPort;

const networkPolicyIngressRule = s.message(
  'k8s.io.api.networking.v1.NetworkPolicyIngressRule',
  'Permitted incoming traffic.',
  {
    ports: optional(
      1,
      s.list(NetworkPolicyPortSchema, { listType: 'atomic' }),
      'Ports of the pods; all ports without any.',
    ),
    from: optional(
      2,
      s.list(NetworkPolicyPeerSchema, { listType: 'atomic' }),
      'Where the traffic comes from; from everywhere without any.',
    ),
  },
);
export interface NetworkPolicyIngressRule extends Infer<typeof networkPolicyIngressRule> {}
export const NetworkPolicyIngressRuleSchema: Schema<NetworkPolicyIngressRule> = networkPolicyIngressRule;

const networkPolicyEgressRule = s.message(
  'k8s.io.api.networking.v1.NetworkPolicyEgressRule',
  'Permitted outgoing traffic.',
  {
    ports: optional(
      1,
      s.list(NetworkPolicyPortSchema, { listType: 'atomic' }),
      'Ports of the destination; all ports without any.',
    ),
    to: optional(
      2,
      s.list(NetworkPolicyPeerSchema, { listType: 'atomic' }),
      'Destinations of the traffic; without any, all destinations.',
    ),
  },
);
export interface NetworkPolicyEgressRule extends Infer<typeof networkPolicyEgressRule> {}
export const NetworkPolicyEgressRuleSchema: Schema<NetworkPolicyEgressRule> = networkPolicyEgressRule;

const networkPolicySpec = s.message('k8s.io.api.networking.v1.NetworkPolicySpec', 'Permitted traffic of pods.', {
  podSelector: filled(
    1,
    labelSelectorSchema,
    'Labels of the pods; an empty selector matches all pods of the namespace.',
  ),
  ingress: optional(
    2,
    s.list(NetworkPolicyIngressRuleSchema, { listType: 'atomic' }),
    'Permitted incoming traffic; none is permitted without any.',
  ),
  egress: optional(
    3,
    s.list(NetworkPolicyEgressRuleSchema, { listType: 'atomic' }),
    'Permitted outgoing traffic; none is permitted without any.',
  ),
  policyTypes: optional(
    4,
    s.list(s.string({ values: ['Egress', 'Ingress'] }), { listType: 'atomic' }),
    'Which traffic is limited: Ingress, Egress or both. Default: by the rules.',
  ),
});
export interface NetworkPolicySpec extends Infer<typeof networkPolicySpec> {}
export const NetworkPolicySpecSchema: Schema<NetworkPolicySpec> = networkPolicySpec;

const networkPolicy = s.message(
  'k8s.io.api.networking.v1.NetworkPolicy',
  'States which traffic pods of a namespace may have.',
  {
    spec: embedded(2, NetworkPolicySpecSchema, 'Permitted traffic.'),
  },
);
export interface NetworkPolicy extends KubeObject, Infer<typeof networkPolicy> {}
export const NetworkPolicySchema: Schema<NetworkPolicy> = networkPolicy;
