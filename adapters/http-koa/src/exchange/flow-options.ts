/** A priority level with a share of `requestsInFlight`. */
export interface PriorityLevel {
  /** The level `exempt` only reserves seats: its requests are not limited. */
  readonly name: string;
  /** Size of the level in proportion to the sum of all levels. */
  readonly shares: number;
  /** Percentage of its seats that other levels may use while they are free. Default 50. */
  readonly lendablePercent?: number;
  /** Maximum number of seats of other levels that it uses, as a percentage of its own. Default: no limit. */
  readonly borrowingLimitPercent?: number;
  /** As {@link FlowControlOptions.queueLength}, for this level. */
  readonly queueLength?: number;
  /** As {@link FlowControlOptions.levelQueueLength}, for this level. 0: no request waits. */
  readonly levelQueueLength?: number;
}

/** Assigns requests to a priority level. A condition that is absent matches every request. */
export interface FlowSchema {
  readonly name: string;
  /** Name of the level; `exempt`: no limit. */
  readonly level: string;
  /** Names of users. The user matches by its name or by one of its groups. */
  readonly users?: readonly string[];
  readonly groups?: readonly string[];
  readonly verbs?: readonly string[];
  /** `pods`, `deployments.apps`, `*`. */
  readonly resources?: readonly string[];
  readonly namespaces?: readonly string[];
  /** Paths outside of the resource API; those below them match, too. */
  readonly paths?: readonly string[];
  /** Whether each user or each namespace has a flow of its own. Default `user`. */
  readonly distinguisher?: 'user' | 'namespace';
}

/** Requests for resources; every list may contain `*`. */
export interface FlowResourceRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  /** `nodes`, `nodes/status`. */
  readonly resources: readonly string[];
  /** Whether requests without a namespace match. */
  readonly clusterScope?: boolean | undefined;
  readonly namespaces: readonly string[];
}

/** Requests for other paths; a path may end in `/*`. */
export interface FlowPathRule {
  readonly verbs: readonly string[];
  readonly nonResourceURLs: readonly string[];
}

/** A request matches when it matches a user or group, and a resource or path. */
export interface FlowRule {
  readonly users: readonly string[];
  readonly groups: readonly string[];
  readonly resourceRules: readonly FlowResourceRule[];
  readonly nonResourceRules: readonly FlowPathRule[];
}

/** Assigns requests that match one of its rules to a priority level. */
export interface RuledFlowSchema extends Pick<FlowSchema, 'name' | 'level'> {
  /** `none`: all requests of the schema are one flow. */
  readonly distinguisher: 'user' | 'namespace' | 'none';
  readonly rules: readonly FlowRule[];
}

/** Levels and schemas in place of the built-in ones. */
export interface FlowRules {
  readonly levels: readonly PriorityLevel[];
  /** In the order in which they are examined. The last one should match every request. */
  readonly schemas: readonly RuledFlowSchema[];
}

/** Fairness between users: see docs/reference/api-rules.md#flow-control. */
export interface FlowControlOptions {
  /** Priority levels in addition to the built-in ones; a level of the same name replaces the built-in one. */
  readonly levels?: readonly PriorityLevel[];
  /** Flow schemas, examined in this order and before the built-in ones. */
  readonly schemas?: readonly FlowSchema[];
  /** Called once, with a function that replaces the built-in levels and schemas whenever it is called. */
  readonly follow?: (apply: (rules: FlowRules) => void) => void;
  /** Requests of one flow that wait for a seat. Default 50. */
  readonly queueLength: number;
  /** Requests of one level that wait for a seat. Default 1,000. */
  readonly levelQueueLength: number;
  /** Longest time in milliseconds that a request waits for a seat. Default 15,000. */
  readonly queueWaitMs: number;
}

export const defaultFlowControl: FlowControlOptions = {
  queueLength: 50,
  levelQueueLength: 1_000,
  queueWaitMs: 15_000,
};
