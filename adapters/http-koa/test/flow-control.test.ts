import type { UserInfo } from '@keelson/core';
import { parseRequestAttributes, type RequestAttributes } from '@keelson/core/internal';
import { FakeClock, noMetrics } from '@keelson/core/runtime';
import test from 'ava';
import fc from 'fast-check';
import { FlowControl } from '../src/exchange/flow-control.ts';
import {
  defaultFlowControl,
  type FlowControlOptions,
  type FlowRule,
  type FlowRules,
} from '../src/exchange/flow-options.ts';
import { HttpMetrics } from '../src/exchange/metrics.ts';
import { defaultLimits, type HttpLimits } from '../src/exchange/options.ts';
import type { Seat } from '../src/exchange/priority-levels.ts';

const get = parseRequestAttributes('GET', '/api/v1/namespaces/a/configmaps/x');
const user = (name: string, ...groups: string[]): UserInfo => ({ name, groups: [...groups, 'system:authenticated'] });
const jane = user('jane');
const joe = user('joe');

interface Scene {
  readonly flows: FlowControl;
  readonly clock: FakeClock;
  enter(who: UserInfo, attributes?: RequestAttributes): Seat | undefined | Promise<Seat | undefined>;
  running(level: string): number;
}

/** All seats belong to the level of authenticated users, unless a test configures other levels. */
function scene(limits: Partial<HttpLimits>, options: Partial<FlowControlOptions> = {}): Scene {
  const clock = new FakeClock();
  const all = { levels: [{ name: 'global-default', shares: 1e9 }], ...defaultFlowControl, ...options };
  const flows = new FlowControl({ ...defaultLimits, ...limits }, all, clock, new HttpMetrics(noMetrics));
  return {
    flows,
    clock,
    enter: (who, attributes = get) => flows.enter(attributes, who, false),
    running: (level) => flows.levels.priorities.find(({ name }) => name === level)?.running ?? 0,
  };
}

const isAdmitted = (seat: unknown): seat is Seat => seat !== undefined && !(seat instanceof Promise);

test('one caller occupies at most half of the seats, and the next caller gets one immediately', (t) => {
  const { enter } = scene({ requestsInFlight: 20 });
  const seats = Array.from({ length: 20 }, () => enter(jane)).filter(isAdmitted);
  t.is(seats.length, 10);
  const others = Array.from({ length: 20 }, () => enter(joe)).filter(isAdmitted);
  t.is(others.length, 5, 'half of the remaining seats');
  t.true(isAdmitted(enter(user('third'))));
});

test('waiting callers take turns when seats become free', async (t) => {
  const { flows, enter } = scene({ requestsInFlight: 4 });
  const first = [enter(jane), enter(jane), enter(joe)].filter(isAdmitted);
  t.is(first.length, 3);
  const order: string[] = [];
  const wait = (name: string, seat: ReturnType<typeof enter>) => {
    t.true(seat instanceof Promise);
    void Promise.resolve(seat).then((given) => {
      order.push(name);
      if (given !== undefined) flows.leave(given);
    });
  };
  for (const name of ['jane 1', 'jane 2', 'jane 3']) wait(name, enter(jane));
  wait('joe 1', enter(joe));
  for (const seat of first) flows.leave(seat);
  for (let i = 0; i < 20; i++) await Promise.resolve();
  t.deepEqual(order.slice().sort(), ['jane 1', 'jane 2', 'jane 3', 'joe 1']);
  t.true(order.indexOf('joe 1') < order.indexOf('jane 2'), `${order}`);
});

test('a request is rejected when the queue of its caller is full, or after its maximum wait', async (t) => {
  const { clock, enter, flows } = scene({ requestsInFlight: 2 }, { queueLength: 2, queueWaitMs: 1_000 });
  const seat = enter(jane);
  t.true(isAdmitted(seat));
  const waiting = [enter(jane), enter(jane)];
  t.is(enter(jane), undefined, 'the queue of jane is full');
  t.true(isAdmitted(enter(joe)), 'joe has a queue of his own');
  clock.advance(1_000);
  for (const waited of waiting) {
    t.true(waited instanceof Promise);
    t.is(await Promise.resolve(waited), undefined);
  }
  t.is(
    flows.levels.priorities.reduce((sum, { queued }) => sum + queued, 0),
    0,
  );
});

test('a level always has the seats of its share, and uses half of the idle seats of other levels', (t) => {
  const levels = ['leader-election', 'system', 'workload-high', 'workload-low', 'global-default', 'catch-all'];
  const { enter, running } = scene({ requestsInFlight: 60 }, { levels: levels.map((name) => ({ name, shares: 1 })) });
  for (let i = 0; i < 200; i++) void enter(user(`user-${i}`));
  t.is(running('global-default'), 35, 'ten of its own, and five of each other level');
  for (let i = 0; i < 200; i++) void enter(user(`system:node:${i}`, 'system:nodes'));
  t.is(running('system'), 10, 'its own seats are available immediately');
});

test('requests are assigned to the level of the first matching schema; configured schemas precede default ones', (t) => {
  const own = [
    { name: 'batch', level: 'catch-all', users: ['jane'], verbs: ['list'], resources: ['configmaps'] },
    { name: 'tenants', level: 'workload-low', namespaces: ['a'], distinguisher: 'namespace' as const },
  ];
  const { enter, running, flows } = scene({ requestsInFlight: 600 }, { levels: [], schemas: own });
  const cases: readonly (readonly [UserInfo, string, string])[] = [
    [jane, '/api/v1/configmaps', 'catch-all'],
    [joe, '/api/v1/configmaps', 'global-default'],
    [jane, '/api/v1/namespaces/a/configmaps/x', 'workload-low'],
    [user('system:node:n', 'system:nodes'), '/api/v1/nodes/n', 'system'],
    [joe, '/apis/coordination.k8s.io/v1/namespaces/b/leases/x', 'leader-election'],
    [
      user('system:serviceaccount:kube-system:x', 'system:serviceaccounts:kube-system'),
      '/api/v1/pods',
      'workload-high',
    ],
    [user('system:serviceaccount:b:x', 'system:serviceaccounts'), '/api/v1/pods', 'workload-low'],
    [{ name: 'system:anonymous', groups: ['system:unauthenticated'] }, '/version', 'catch-all'],
  ];
  for (const [who, path, level] of cases) {
    const before = running(level);
    const seat = enter(who, parseRequestAttributes('GET', path));
    t.is(running(level), before + 1, path);
    if (isAdmitted(seat)) flows.leave(seat);
  }
  for (const [who, path] of [
    [user('root', 'system:masters'), '/api/v1/pods'],
    [{ name: 'system:anonymous', groups: [] }, '/readyz'],
  ] as const) {
    const seat = enter(who, parseRequestAttributes('GET', path));
    t.true(isAdmitted(seat) && seat.flow === undefined, `${path} is exempt`);
  }
});

test('watches and connect requests are limited per user and in total, those of system:masters in total only', (t) => {
  const { flows } = scene({ connects: 3, connectsPerUser: 1, watches: 3, watchesPerUser: 1 });
  const watch = parseRequestAttributes('GET', '/api/v1/pods?watch=1');
  for (const [attributes, isConnect] of [
    [get, true],
    [watch, false],
  ] as const) {
    const enter = (who: UserInfo) => flows.enter(attributes, who, isConnect);
    const seat = enter(jane);
    t.true(isAdmitted(seat));
    t.is(enter(jane), undefined);
    const root = user('root', 'system:masters');
    t.true(isAdmitted(enter(root)) && isAdmitted(enter(root)));
    t.is(enter(root), undefined);
    if (isAdmitted(seat)) flows.leave(seat);
    t.true(isAdmitted(enter(joe)));
  }
});

test('property: seats are never exceeded, no request waits beside a free seat, and all seats are released', async (t) => {
  const seed = Number(process.env['KEELSON_SEED'] ?? Date.now() % 1e6);
  t.log(`KEELSON_SEED=${seed}`);
  const steps = fc.array(fc.record({ caller: fc.nat(5), end: fc.boolean(), pick: fc.nat() }), { maxLength: 200 });
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 12 }), async (moves, requestsInFlight) => {
      const { flows, enter } = scene({ requestsInFlight });
      const held: Seat[] = [];
      let open = 0;
      const settle = async () => {
        for (let i = 0; i < 4; i++) await Promise.resolve();
      };
      for (const { caller, end, pick } of moves) {
        if (end && held.length > 0) flows.leave(held.splice(pick % held.length, 1)[0] as Seat);
        else {
          const seat = enter(user(`u${caller}`));
          if (isAdmitted(seat)) held.push(seat);
          else if (seat !== undefined) {
            open += 1;
            void seat.then((given) => {
              open -= 1;
              if (given !== undefined) held.push(given);
            });
          }
        }
        await settle();
        const level = flows.levels.priorities.find(({ name }) => name === 'global-default');
        t.is(level?.running, held.length);
        t.true(held.length <= requestsInFlight);
        t.is(level?.queued, open);
        if (open > 0) t.true(held.length > 0);
      }
      while (held.length > 0) {
        flows.leave(held.pop() as Seat);
        await settle();
      }
      t.is(open, 0);
    }),
    { seed, numRuns: 100 },
  );
});

/** Levels and schemas that a test changes while requests run. */
function ruledScene(limits: Partial<HttpLimits>, options: Partial<FlowControlOptions> = {}) {
  let apply: (rules: FlowRules) => void = () => {};
  const follow = (given: typeof apply) => {
    apply = given;
  };
  return { ...scene(limits, { levels: [], follow, ...options }), apply: (rules: FlowRules) => apply(rules) };
}

const everything = {
  resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*'] }],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
};
const schema = (name: string, level: string, rule: Partial<FlowRule>) => ({
  ...{ name, level, distinguisher: 'user' as const },
  rules: [{ users: [], groups: [], resourceRules: [], nonResourceRules: [], ...rule }],
});
const others = schema('others', 'others', { groups: ['*'], ...everything });

test('rules match users or groups, verbs, groups, resources with subresources, namespaces and paths', (t) => {
  const { apply, enter, running, flows } = ruledScene({ requestsInFlight: 100 });
  const pods = { verbs: ['list', 'get'], apiGroups: [''], resources: ['pods', 'pods/status'], namespaces: ['a'] };
  apply({
    levels: [
      { name: 'matched', shares: 50 },
      { name: 'others', shares: 50 },
    ],
    schemas: [
      schema('of jane', 'matched', { users: ['jane'], resourceRules: [pods] }),
      schema('of a group', 'matched', {
        groups: ['team'],
        resourceRules: [{ ...pods, clusterScope: true, namespaces: [] }],
        nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/metrics', '/debug/*'] }],
      }),
      schema('exempt', 'exempt', { groups: ['system:masters'], ...everything }),
      others,
    ],
  });
  const member = user('joe', 'team');
  const cases: readonly (readonly [UserInfo, string, 'matched' | 'others', string?])[] = [
    [jane, '/api/v1/namespaces/a/pods', 'matched'],
    [jane, '/api/v1/namespaces/a/pods/x/status', 'matched'],
    [jane, '/api/v1/namespaces/a/pods/x/log', 'others'],
    [jane, '/api/v1/namespaces/a/pods/x', 'others', 'DELETE'],
    [jane, '/api/v1/namespaces/b/pods', 'others'],
    [jane, '/api/v1/pods', 'others'],
    [jane, '/apis/metrics.k8s.io/v1beta1/namespaces/a/pods', 'others'],
    [joe, '/api/v1/namespaces/a/pods', 'others'],
    [member, '/api/v1/pods', 'matched'],
    [member, '/api/v1/namespaces/a/pods', 'others'],
    [member, '/metrics', 'matched'],
    [member, '/metrics/cadvisor', 'others'],
    [member, '/debug/pprof/heap', 'matched'],
    [jane, '/metrics', 'others'],
  ];
  for (const [who, path, level, method = 'GET'] of cases) {
    const seat = enter(who, parseRequestAttributes(method, path));
    t.is(running(level), 1, `${method} ${path} of ${who.name}`);
    if (isAdmitted(seat)) flows.leave(seat);
  }
  const master = enter(user('root', 'system:masters'));
  t.true(isAdmitted(master) && master.flow === undefined);
});

test('a level lends and borrows as many seats as it says, and exempt requests have their own', (t) => {
  const { apply, enter, running } = ruledScene({ requestsInFlight: 100 });
  const levels = [
    { name: 'exempt', shares: 20, lendablePercent: 50 },
    { name: 'kept', shares: 40, lendablePercent: 25 },
    { name: 'others', shares: 38, lendablePercent: 0 },
    { name: 'catch-all', shares: 2, lendablePercent: 0 },
  ];
  apply({ levels, schemas: [others] });
  for (let i = 0; i < 200; i++) void enter(user(`user-${i}`));
  t.is(running('others'), 58, '38 of its own, 10 of each other level that lends some');

  const limited = ruledScene({ requestsInFlight: 100 });
  const borrowing = levels.map((level) => (level.name === 'others' ? { ...level, borrowingLimitPercent: 10 } : level));
  limited.apply({ levels: borrowing, schemas: [others] });
  for (let i = 0; i < 200; i++) void limited.enter(user(`user-${i}`));
  t.is(limited.running('others'), 42, 'a tenth of its own more');
});

test('a level without a queue rejects, and requests without a flow distinguisher are one flow', (t) => {
  const { apply, enter } = ruledScene({ requestsInFlight: 4 });
  const levels = [{ name: 'others', shares: 100, queueLength: 0, levelQueueLength: 0 }];
  apply({ levels, schemas: [{ ...others, distinguisher: 'none' }] });
  const seats = [jane, joe, user('third'), user('fourth')].map((who) => enter(who));
  t.is(seats.filter(isAdmitted).length, 2, 'half of the seats, as for one caller');
  t.deepEqual(
    seats.filter((seat) => !isAdmitted(seat)),
    [undefined, undefined],
  );
});

test('changed rules apply to the next requests, and waiting requests of a removed level still get their turn', async (t) => {
  const { apply, enter, flows } = ruledScene({ requestsInFlight: 2 });
  const old = { name: 'old', shares: 100, lendablePercent: 0 };
  apply({ levels: [old], schemas: [{ ...others, level: 'old' }] });
  const first = enter(jane);
  t.true(isAdmitted(first));
  const waiting = enter(jane);
  t.true(waiting instanceof Promise);
  apply({ levels: [{ name: 'others', shares: 100 }], schemas: [others] });
  const names = () => flows.levels.priorities.map(({ name }) => name).sort();
  t.deepEqual(names(), ['catch-all', 'old', 'others']);
  const next = enter(jane);
  t.true(isAdmitted(next) && next.flow?.level.name === 'others');
  flows.leave(first as Seat);
  const second = await waiting;
  t.is(second?.flow?.level.name, 'old');
  flows.leave(second as Seat);
  t.deepEqual(names(), ['catch-all', 'others']);
});

test('a request whose level does not exist belongs to the level catch-all', (t) => {
  const { apply, enter, running } = ruledScene(
    { requestsInFlight: 10 },
    { schemas: [{ name: 'own', level: 'workload-low', users: ['jane'] }] },
  );
  apply({ levels: [{ name: 'others', shares: 1 }], schemas: [] });
  void enter(jane);
  void enter(joe);
  t.is(running('catch-all'), 2);
});
