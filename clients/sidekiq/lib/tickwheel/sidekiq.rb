# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "delegate"
require "sidekiq"
require "sidekiq/api"
require "sidekiq/client"
require "sidekiq/job_retry"
require "sidekiq/launcher"
require "sidekiq/scheduled"

module Tickwheel
  # Jobs of Sidekiq that are due later, parked in queues of the Redis module.
  #
  #   gem "tickwheel-sidekiq", require: "tickwheel/sidekiq"
  #
  # From then on perform_in, perform_at and the retries of failed jobs are filed with TW.SEND. When a job is
  # due, the server itself pushes it to the list of its queue. So the poller of Sidekiq is not started, and
  # the sorted sets "schedule" and "retry" stay empty. docs/frameworks.md tells which features of Sidekiq
  # work, and which do not.
  #
  # A job is parked under its jid: a job that is filed again under a jid replaces the job that is parked under
  # it.
  module Sidekiq
    VERSION = "1.0.0"

    # Sidekiq's sorted sets, each with the module's queue that takes its place.
    QUEUES = {"schedule" => "tickwheel:queue", "retry" => "tickwheel:retry"}.freeze
    PAGE = 1000

    # Moves a job from a sorted set to the module's queue, unless a poller has taken it from the set. TW.SEND
    # comes first: if it fails, nothing is changed. A set may hold several jobs under one jid, and none of
    # them may be lost.
    ADOPT = <<~LUA
      if not redis.call("ZSCORE", KEYS[1], ARGV[1]) then return 0 end
      local function park(id)
        return redis.call("TW.SEND", KEYS[2], KEYS[3], id, "AT", ARGV[3], "NX", "LIST", "LEFT",
          "PAYLOAD", ARGV[4])
      end
      if not park(ARGV[2]) then park("*") end
      redis.call("SADD", KEYS[4], ARGV[5])
      return redis.call("ZREM", KEYS[1], ARGV[1])
    LUA

    # A parked job: its hash, when it is due, and whether it waits for a retry.
    Parked = Struct.new(:item, :due, :retry, keyword_init: true)

    class << self
      # Removes parked jobs for good. Returns the number that was removed; 0 says that none of them is parked,
      # so each is due already, done or unknown.
      def cancel(*jids)
        return 0 if jids.empty?
        redis { |conn| QUEUES.values.sum { |key| conn.call("TW.CANCEL", key, *jids).count(&:positive?) } }
      end

      # Returns the job that is parked under this jid, as Parked; nil if there is none.
      def find(jid)
        QUEUES.each do |set, key|
          row = redis { |conn| conn.call("TW.GET", key, jid) }.first or next
          task = row.is_a?(Hash) ? row : Hash[*row] # a map in RESP3, a flat array in RESP2
          return Parked.new(item: ::Sidekiq.load_json(task["payload"].first), retry: set == "retry",
            due: Time.at(task["due"] / 1000r))
        end
        nil
      end

      # Gives a parked job another time: a Time, Unix seconds, or seconds from now as in perform_in. Returns
      # whether the job was parked.
      def move(jid, time)
        job = find(jid) or return false
        at = time.to_f < 1_000_000_000 ? Time.now.to_f + time.to_f : time.to_f
        !redis { |conn| park(conn, job.retry ? "retry" : "schedule", job.item, at, "XX") }.nil?
      end

      # Returns how many jobs are parked: {"schedule" => 3, "retry" => 1}.
      def sizes
        redis { |conn| QUEUES.transform_values { |key| conn.call("TW.LEN", key) } }
      end

      # Parks the jobs that lie in Sidekiq's sorted sets, and returns their number. Each job is moved in one
      # step (Lua), so none is lost or doubled, even while old processes with a poller run. Each server
      # process calls this when it starts. Entries that are no JSON stay.
      def adopt
        QUEUES.sum { |set, key| adopt_set(set, key) }
      end

      # Files a job, a hash, at a time in Unix seconds. Returns the reply of TW.SEND.
      def park(conn, set, item, at, *options)
        refuse_namespace(conn)
        queue, entry = item["queue"], entry_of(item, at)
        conn.call("SADD", "queues", queue)
        conn.call("TW.SEND", QUEUES.fetch(set), "queue:#{queue}", item["jid"], "AT", unix_ms(at), *options,
          "LIST", "LEFT", "PAYLOAD", entry)
      end

      private

      def redis(&block)
        ::Sidekiq.redis(&block)
      end

      # Rounded up: a job is never due early.
      def unix_ms(at)
        [(at * 1000).ceil, 0].max
      end

      # The entry of the list as Sidekiq's poller would push it at that time.
      def entry_of(item, at)
        ::Sidekiq.dump_json(item.merge("enqueued_at" => at).reject { |name, _| name == "at" })
      end

      def adopt_set(set, key)
        moved = kept = 0
        loop do
          page = redis { |conn| conn.zrange(set, kept, kept + PAGE - 1, with_scores: true) }
          return moved if page.empty?
          calls = page.filter_map { |member, at| adoption_of(set, key, member, at) }
          kept += page.size - calls.size
          moved += redis { |conn| adopt_page(conn, calls) }.sum
        end
      end

      # Returns keys and arguments of ADOPT for an entry of a sorted set; nil if the entry is no JSON.
      def adoption_of(set, key, member, at)
        item = ::Sidekiq.load_json(member)
        queue = item["queue"]
        keys = [set, key, "queue:#{queue}", "queues"]
        [keys, [member, item["jid"], unix_ms(at), entry_of(item, at), queue]]
      rescue JSON::ParserError
        nil
      end

      def adopt_page(conn, calls)
        refuse_namespace(conn)
        conn.pipelined { |pipeline| calls.each { |keys, values| pipeline.eval(ADOPT, keys, values) } }
      end

      def refuse_namespace(conn)
        return unless conn.respond_to?(:namespace)
        raise ArgumentError, "the namespace is '#{conn.namespace}': expected Redis without redis-namespace"
      end
    end

    # Sidekiq::Client with jobs parked.
    module Client
      private

      def atomic_push(conn, payloads)
        return super unless payloads.first.key?("at")
        payloads.each { |item| Tickwheel::Sidekiq.park(conn, "schedule", item, item["at"]) }
      end
    end

    # A connection for JobRetry, which parks the job instead of adding it to the sorted set "retry".
    class RetryConnection < SimpleDelegator
      def zadd(key, at, payload)
        return __getobj__.zadd(key, at, payload) unless key == "retry"
        Tickwheel::Sidekiq.park(__getobj__, "retry", ::Sidekiq.load_json(payload), at.to_f)
      end
    end

    # Sidekiq::JobRetry writes to Redis in the middle of a long method. During that method it gets another
    # connection.
    module JobRetry
      private

      def attempt_retry(*)
        Thread.current[:tickwheel_retry] = true
        super
      ensure
        Thread.current[:tickwheel_retry] = nil
      end
    end

    # Sidekiq.redis, which gives JobRetry its connection.
    module Redis
      def redis
        return super unless Thread.current[:tickwheel_retry] && block_given?
        super { |conn| yield RetryConnection.new(conn) }
      end
    end

    # Sidekiq::Scheduled::Poller, which has nothing to look for.
    module Poller
      def start
      end
    end

    ::Sidekiq::Client.prepend(Client)
    ::Sidekiq::JobRetry.prepend(JobRetry)
    ::Sidekiq.singleton_class.prepend(Redis)
    ::Sidekiq::Scheduled::Poller.prepend(Poller)
    ::Sidekiq.configure_server { |config| config.on(:startup) { Tickwheel::Sidekiq.adopt } }
  end
end
