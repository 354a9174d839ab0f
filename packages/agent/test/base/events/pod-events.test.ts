import type { Pod } from '@keelson/kinds';
import test from 'ava';
import { type EventSubject, podEvents } from '../../../src/base/events/event-recorder.ts';

test('an event of a container names it by its field path in the specification', (t) => {
  const pod: Pod = {
    metadata: { name: 'web', namespace: 'shop', uid: 'u1' },
    spec: {
      containers: [{ name: 'main', image: 'host' }],
      initContainers: [{ name: 'init', image: 'host' }],
    } as Pod['spec'],
  };
  const subjects: EventSubject[] = [];
  const events = podEvents({ record: (subject) => subjects.push(subject) });
  events.record(pod, 'Warning', 'BackOff', 'again', 'main');
  events.record(pod, 'Normal', 'Started', 'on', 'init');
  events.record(pod, 'Normal', 'Killing', 'off');
  const subject = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'web', uid: 'u1' };
  t.deepEqual(subjects, [
    { ...subject, fieldPath: 'spec.containers{main}' },
    { ...subject, fieldPath: 'spec.initContainers{init}' },
    subject,
  ]);
});
