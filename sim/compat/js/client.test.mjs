// The npm client of OpenSearch against a live cluster of three nodes, whose
// addresses are in WLMSIM_URLS. The Go test TestTheNpmClient starts both.
import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, errors } from '@opensearch-project/opensearch';

const urls = process.env.WLMSIM_URLS.split(',');
const user = (name) => ({ username: name, password: 'any' });
const limits = { resiliency_mode: 'enforced', resource_limits: { cpu: 0.1 } };

// connect makes a client that the test closes at its end.
const connect = (t, options) => {
  const client = new Client({ auth: user('bob'), requestTimeout: 60_000, ...options });
  t.after(() => client.close());
  return client;
};

// refusal runs a request that must end in a ResponseError and returns that.
const refusal = async (request) => {
  const error = await request.then(() => assert.fail('it succeeded'), (e) => e);
  assert.ok(error instanceof errors.ResponseError, String(error));
  return error;
};

// until waits for what another process does.
const until = async (holds) => {
  while (!(await holds())) await pause(20);
};

const held = async (client, group) => {
  const { body } = await client.transport.request({ method: 'GET', path: '/_wlmsim/state' });
  return body.permits[group]?.held ?? 0;
};

const search = (cost) => ({ index: 'logs', body: { size: 1, ext: { wlmsim: { service_time: cost } } } });

test('it discovers the nodes on start and uses them all', async (t) => {
  const client = new Client({ node: urls[0], auth: user('bob'), sniffOnStart: true });
  t.after(() => client.close());
  const { hosts } = await new Promise((resolve, reject) =>
    client.on('sniff', (error, result) => (error ? reject(error) : resolve(result.meta.sniff))));
  assert.deepEqual(hosts.map((h) => h.url.origin).sort(), [...urls].sort());
  assert.ok(hosts.every((h) => h.roles.data && h.roles.cluster_manager));
  const answered = new Set();
  for (let i = 0; i < 9; i++) {
    const { meta } = await client.search({ index: 'logs' });
    answered.add(meta.connection.url.origin);
  }
  assert.deepEqual([...answered].sort(), [...urls].sort());
});

test('its typed calls for query groups go through the alias', async (t) => {
  const client = connect(t, { node: urls[1] });
  const created = await client.wlm.createQueryGroup({ body: { name: 'typed', ...limits } });
  assert.equal(created.statusCode, 200);
  assert.match(created.body._id, /^[\w-]{22}$/);
  const updated = await client.wlm.updateQueryGroup({ name: 'typed', body: { resiliency_mode: 'soft', resource_limits: { memory: 0.2 } } });
  assert.deepEqual(updated.body.resource_limits, { cpu: 0.1, memory: 0.2 });
  const one = await client.wlm.getQueryGroup({ name: 'typed' });
  assert.deepEqual(one.body.query_groups, [updated.body]);
  const all = await client.wlm.getQueryGroup();
  assert.ok(all.body.query_groups.some((g) => g._id === created.body._id && g.resiliency_mode === 'soft'));
  const gone = await client.wlm.deleteQueryGroup({ name: 'typed' });
  assert.deepEqual(gone.body, { acknowledged: true });

  const missing = await refusal(client.wlm.getQueryGroup({ name: 'typed' }));
  assert.equal(missing.statusCode, 404);
  assert.equal(missing.body.error.type, 'resource_not_found_exception');
  const wrong = await refusal(client.wlm.createQueryGroup({ body: { name: 'typed', ...limits, resource_limits: { cpu: 2 } } }));
  assert.equal(wrong.statusCode, 400);
  assert.equal(wrong.body.error.reason, 'resource value should be greater than 0 and less or equal to 1.0');
});

test('other typed calls fit', async (t) => {
  const client = connect(t, { node: urls[0] });
  const { body: info } = await client.info();
  assert.equal(info.version.distribution, 'opensearch');
  assert.equal((await client.ping()).body, true);
  assert.equal((await client.indices.exists({ index: 'logs' })).body, true);
  assert.equal((await client.indices.exists({ index: 'none' })).body, false);
  const { body: health } = await client.cluster.health({ wait_for_status: 'green', timeout: '30s' });
  assert.equal(health.number_of_nodes, 3);
  await client.cluster.putSettings({ body: { persistent: { 'wlm.query_group.duress_streak': 5 } } });
  const { body: settings } = await client.cluster.getSettings({ flat_settings: true });
  assert.equal(settings.persistent['wlm.workload_group.duress_streak'], '5');
  const { body: nodes } = await client.cat.nodes({ format: 'json', h: 'name', s: 'name' });
  assert.deepEqual(nodes, [{ name: 'm1' }, { name: 'm2' }, { name: 'm3' }]);
  const { body: found } = await client.search({ index: 'logs', size: 3, filter_path: 'hits.hits._id' });
  assert.deepEqual(Object.keys(found), ['hits']);
  assert.equal(found.hits.hits.length, 3);
  assert.ok((await client.count({ index: 'logs' })).body.count > 0);
});

test('a throttled search is a ResponseError, and the next try succeeds once the permit is back', async (t) => {
  const client = connect(t, { node: urls[2] });
  const { body: group } = await client.wlm.createQueryGroup({
    body: { name: 'narrow', ...limits, throttling: { attribute: 'username', node_limit: 1 } },
  });
  const as = (name) => ({ headers: { queryGroupId: group._id, authorization: `Basic ${Buffer.from(`${name}:any`).toString('base64')}` } });
  const slow = client.search(search('10m'), as('alice'));
  await until(async () => (await held(client, group._id)) === 1);

  const refused = await refusal(client.search(search('1ms'), as('alice')));
  assert.equal(refused.statusCode, 429);
  assert.equal(refused.name, 'ResponseError');
  assert.equal(refused.body.status, 429);
  assert.equal(refused.body.error.type, 'rejected_execution_exception');
  assert.equal(refused.body.error.root_cause[0].type, 'rejected_execution_exception');
  assert.equal(refused.headers['retry-after'], undefined);
  assert.equal((await client.search(search('1ms'), as('bob'))).statusCode, 200);

  // The client leaves 429 to its caller, whatever maxRetries says.
  assert.equal((await refusal(client.search(search('1ms'), { ...as('alice'), maxRetries: 3 }))).meta.meta.attempts, 0);

  let tries = 0;
  for (let wait = 10; ; wait = Math.min(2 * wait, 200)) {
    tries++;
    try {
      await client.search(search('1ms'), as('alice'));
      break;
    } catch (error) {
      assert.equal(error.statusCode, 429);
      if (tries === 2) {
        slow.abort();
        await assert.rejects(slow, errors.RequestAbortedError);
      }
      await pause(wait);
    }
  }
  assert.ok(tries > 2);
  const { body: stats } = await client.transport.request({ method: 'GET', path: `/_wlm/_local/stats/${group._id}` });
  const [node] = Object.values(stats).filter((n) => n.query_groups);
  assert.equal(node.query_groups[group._id].total_throttled, tries + 1);
});

test('it retries on the next node while one does not answer', async (t) => {
  const client = connect(t, { nodes: ['http://127.0.0.1:1', urls[0]], maxRetries: 2, nodeSelector: 'round-robin' });
  const answers = [];
  for (let i = 0; i < 4; i++) answers.push(await client.search({ index: 'logs' }));
  assert.ok(answers.every((a) => a.meta.connection.url.origin === urls[0]));
  assert.ok(answers.some((a) => a.meta.attempts > 0), 'no search met the node that is down');
});
