"""Feeds for the tests."""

import pytest

RSS = """\
<rss version="2.0"><channel>
  <title>Town News</title>
  <item>
    <title>New bridge opens</title>
    <link>https://town.example/bridge</link>
    <guid>town-1</guid>
    <pubDate>Fri, 01 Mar 2024 09:00:00 +0000</pubDate>
    <category>Traffic</category>
    <category>Building</category>
  </item>
  <item>
    <title>Choir looks for voices</title>
    <link>https://town.example/choir</link>
    <pubDate>Thu, 29 Feb 2024 23:30:00 -0100</pubDate>
    <category> Music </category>
  </item>
  <item>
    <title>Opening hours</title>
    <guid>town-3</guid>
    <pubDate>soon</pubDate>
    <category>Traffic</category>
  </item>
</channel></rss>
"""

ATOM = """\
<feed xmlns="http://www.w3.org/2005/Atom">
  <title>Region Daily</title>
  <entry>
    <id>region-1</id>
    <title>Trains on strike</title>
    <link rel="alternate" href="https://region.example/strike"/>
    <published>2024-03-02T06:00:00Z</published>
    <category term="traffic"/>
  </entry>
  <entry>
    <id>town-1</id>
    <title>Bridge opens in town</title>
    <updated>2024-03-01T12:00:00+02:00</updated>
    <category term="Regional"/>
  </entry>
  <entry>
    <id>region-2</id>
    <title>Weather</title>
    <updated>2024-02-28T12:00:00Z</updated>
  </entry>
</feed>
"""


@pytest.fixture
def rss():
    return RSS


@pytest.fixture
def atom():
    return ATOM
