import test from 'ava';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';

test('counters and gauges are identified by their labels, independent of the object that contains them', async (t) => {
  const metrics = createPromMetrics();
  const counter = metrics.counter({ name: 'things_total', help: 'Things.', labels: ['verb', 'code'] });
  const same = { verb: 'get', code: '200' };
  counter.add(1, same);
  counter.add(2, same);
  counter.add(3, { code: '200', verb: 'get' });
  counter.add(1, { verb: 'a "b"\n', code: '500' });
  metrics.gauge({ name: 'level', help: 'Level.' }).set(7);
  const text = await metrics.text();
  t.regex(text, /^# TYPE things_total counter\nthings_total\{verb="get",code="200"\} 6\n/m);
  t.true(text.includes('things_total{verb="a \\"b\\"\\n",code="500"} 1\n'));
  t.regex(text, /^# TYPE level gauge\nlevel 7$/m);
});

test('a metric without labels is reported before its first change', async (t) => {
  const metrics = createPromMetrics();
  metrics.counter({ name: 'nothing_total', help: 'Nothing.' });
  t.regex(await metrics.text(), /^nothing_total 0$/m);
});

test('histograms count up their buckets, bounds included', async (t) => {
  const metrics = createPromMetrics();
  const histogram = metrics.histogram({ name: 'took_seconds', help: 'Time.', labels: ['verb'], buckets: [0.5, 1] });
  for (const value of [0.25, 0.5, 0.75, 3]) histogram.observe(value, { verb: 'get' });
  const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith('took'));
  t.deepEqual(lines, [
    'took_seconds_bucket{le="0.5",verb="get"} 2',
    'took_seconds_bucket{le="1",verb="get"} 3',
    'took_seconds_bucket{le="+Inf",verb="get"} 4',
    'took_seconds_sum{verb="get"} 4.5',
    'took_seconds_count{verb="get"} 4',
  ]);
});

test('the same name is the same metric', async (t) => {
  const metrics = createPromMetrics();
  const options = { name: 'shared_total', help: 'Shared.' };
  metrics.counter(options).add(1);
  metrics.counter(options).add(1);
  t.regex(await metrics.text(), /^shared_total 2$/m);
});
